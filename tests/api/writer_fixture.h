// WriterTest: writers with the real `pack`, through the wrapper.
//
//   TEST_F(WriterTest, ...) {
//     Writer writer(At("out"));
//     for (const Sample& sample : Samples(20)) Add(writer, sample);
//     Finish(writer);
//
// Lifetime: the folder stays until the next run of the same test.
#ifndef SHARDPACK_TESTS_API_WRITER_FIXTURE_H_
#define SHARDPACK_TESTS_API_WRITER_FIXTURE_H_

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/shardpack.hpp"
#include "gtest/gtest.h"

namespace shardpack_api {

namespace fs = std::filesystem;

inline std::string Contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Of a dataset, without the manifest, which names where it came from.
inline std::map<std::string, std::string> Files(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename() != "manifest.json")
      files[entry.path().filename().string()] = Contents(entry.path());
  }
  return files;
}

template <typename Call>
Code CodeOf(Call call, std::string* message = nullptr) {
  try {
    call();
  } catch (const Error& error) {
    if (message != nullptr) *message = error.what();
    return error.code();
  }
  return Code::kOk;
}

struct Sample {
  std::string key;
  std::optional<std::string> label;
  std::string image, caption;
};

class WriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("SHARDPACK_PACK", fs::absolute("cli/pack").c_str(), 1);
    folder_ = fs::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    for (const char* name : {"baseline.jpg", "rgb.png", "lossy.webp", "gray.jpg"})
      images_.push_back(Contents(fs::path("testdata/images") / name));
  }

  std::string At(const std::string& name) const { return (folder_ / name).string(); }
  std::vector<std::string> Classes(const std::string& name) const {
    const Dataset data(At(name));
    const auto classes = data.classes();
    return {classes.begin(), classes.end()};
  }
  std::string FirstKey(const std::string& name) const {
    const Dataset data(At(name));
    return std::string(data.key(0));
  }
  std::vector<Sample> Samples(size_t count) const {
    std::vector<Sample> samples;
    for (size_t n = 0; n < count; ++n) {
      const std::string number = std::to_string(n);
      samples.push_back(
          {"set/" + number,
           n % 5 == 4 ? std::nullopt : std::optional("class " + std::to_string(n % 3)),
           images_[n % images_.size()], n % 4 == 1 ? "" : "caption " + number});
    }
    return samples;
  }
  static void Add(Writer& writer, const Sample& sample) {
    std::vector<shardpack_field> fields = {{"txt", sample.caption.data(), sample.caption.size()},
                                           {nullptr, sample.image.data(), sample.image.size()}};
    if (sample.caption.empty()) fields.erase(fields.begin());
    writer.add(sample.key, sample.label, fields);
  }
  static void Finish(Writer& writer) {
    Job job = writer.finish();
    EXPECT_EQ(job.wait(), 0) << job.result_json();
  }

  fs::path folder_;
  std::vector<std::string> images_;
};

}  // namespace shardpack_api

#endif  // SHARDPACK_TESTS_API_WRITER_FIXTURE_H_

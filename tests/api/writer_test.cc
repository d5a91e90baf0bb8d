// Writers with the real `pack`, through the wrapper.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "api/shardpack.hpp"

namespace shardpack_api {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

std::string Contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Of a dataset, without the manifest, which names where it came from.
std::map<std::string, std::string> Files(const fs::path& folder) {
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

TEST_F(WriterTest, WhatWasAddedComesBack) {
  const std::vector<Sample> samples = Samples(30);
  Writer writer(At("out"));
  for (const Sample& sample : samples) Add(writer, sample);
  EXPECT_FALSE(writer.has("set/3"));
  Finish(writer);
  EXPECT_FALSE(fs::exists(At("out.parts")));
  EXPECT_EQ(CodeOf([&] { Add(writer, {"set/new", {}, images_[0], ""}); }), Code::kState);

  const Dataset data(At("out"));
  ASSERT_EQ(data.samples(), samples.size());
  EXPECT_THAT(data.classes(), ElementsAre("class 0", "class 1", "class 2"));
  for (const Sample& sample : samples) {
    const Batch batch = data.read({data.find_key(sample.key)}, {"image", "txt"});
    const auto image = batch.bytes()[0], caption = batch.bytes("txt")[0];
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(image.data()), image.size()), sample.image);
    EXPECT_EQ(caption.data() == nullptr, sample.caption.empty());
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(caption.data()), caption.size()),
              sample.caption);
    const int64_t label = batch.labels()[0];
    EXPECT_EQ(label < 0 ? std::nullopt
                        : std::optional(std::string(data.classes()[static_cast<size_t>(label)])),
              sample.label);
  }
  EXPECT_EQ(Job({"validate", At("out")}).wait(), 0);
  EXPECT_EQ(CodeOf([&] { Writer(At("out")); }), Code::kExists);
}

TEST_F(WriterTest, TheShardsAreTheSameForOneWriterAndSixteen) {
  std::vector<Sample> samples = Samples(100);
  const std::vector<std::string> arguments = {"--format=tfrecord", "--samples-per-shard=20"};
  {
    Writer one(At("one"), {.arguments = arguments});
    for (const Sample& sample : samples) Add(one, sample);
    Finish(one);
  }
  std::shuffle(samples.begin(), samples.end(), std::mt19937(7));
  Writer last;
  for (uint32_t worker = 0; worker < 16; ++worker) {
    Writer writer(At("many"), {.arguments = arguments, .worker = worker, .workers = 16});
    for (size_t n = worker; n < samples.size(); n += 16) {
      Add(writer, samples[n]);
      if (n % 3 == 0) writer.flush();
    }
    writer.flush();
    if (worker == 15) last = std::move(writer);
  }
  Finish(last);
  EXPECT_EQ(Files(At("one")), Files(At("many")));
  EXPECT_EQ(Dataset(At("one")).identity(), Dataset(At("many")).identity());
}

TEST_F(WriterTest, AWriterGoesOnWhereAnotherEnded) {
  const std::vector<Sample> samples = Samples(9);
  const pid_t child = ::fork();
  if (child == 0) {
    Writer writer(At("out"));
    for (size_t n = 0; n < 4; ++n) Add(writer, samples[n]);
    writer.flush();
    Add(writer, samples[4]);
    ::_exit(0);  // as if it was killed
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  Writer writer(At("out"));
  for (size_t n = 0; n < samples.size(); ++n) {
    EXPECT_EQ(writer.has(samples[n].key), n < 4) << n;
    if (n < 4) {
      EXPECT_EQ(CodeOf([&] { Add(writer, samples[n]); }), Code::kExists);
    } else {
      Add(writer, samples[n]);
    }
  }
  Finish(writer);
  EXPECT_EQ(Dataset(At("out")).samples(), 9u);
}

TEST_F(WriterTest, WhatWasNotFlushedIsGoneAndNothingElse) {
  const std::vector<Sample> samples = Samples(3);
  {
    Writer writer(At("out"));
    Add(writer, samples[0]);
    writer.flush();
    EXPECT_TRUE(writer.has(samples[0].key));
    Add(writer, samples[1]);
  }
  // What a crash leaves behind.
  std::ofstream(At("out.parts/w00000-000001.stage")) << "x";
  std::ofstream(At("out.parts/w00000-000001.tfrecord")) << "x";
  for (const char* name : {"mine.txt", "wedding.json", "w00000.json", "w00000-x.pidx"})
    std::ofstream(At("out.parts/") + name) << "x";
  Writer writer(At("out"));
  EXPECT_TRUE(writer.has(samples[0].key));
  EXPECT_FALSE(writer.has(samples[1].key));
  Add(writer, samples[2]);
  Finish(writer);
  EXPECT_EQ(Dataset(At("out")).samples(), 2u);
  EXPECT_THAT(Files(At("out.parts")), ::testing::SizeIs(4));  // those are not the library's
}

TEST_F(WriterTest, WorkersExcludeEachOtherAndWaitForAll) {
  const std::vector<Sample> samples = Samples(4);
  const WriterOptions first{.worker = 0, .workers = 3}, second{.worker = 1, .workers = 3},
      third{.worker = 2, .workers = 3};
  Writer one(At("out"), first);
  Add(one, samples[0]);
  std::string message;
  EXPECT_EQ(CodeOf([&] { Writer(At("out"), first); }, &message), Code::kState);
  EXPECT_THAT(message, HasSubstr("another writer is worker 0"));
  {
    Writer two(At("out"), second);
    Add(two, samples[1]);
    two.flush();
    EXPECT_EQ(CodeOf([&] { one.finish(); }, &message), Code::kState);
    EXPECT_THAT(message, HasSubstr("worker 1 of 3 is still writing"));
  }
  EXPECT_EQ(CodeOf([&] { one.finish(); }, &message), Code::kState);
  EXPECT_THAT(message, HasSubstr("worker 2 of 3 has not begun"));
  {
    Writer three(At("out"), third);
    EXPECT_EQ(CodeOf([&] { Add(three, samples[1]); }), Code::kExists);  // another worker's
  }
  Finish(one);
  EXPECT_EQ(Dataset(At("out")).samples(), 2u);
  EXPECT_EQ(CodeOf([&] { Writer(At("x"), {.worker = 3, .workers = 3}); }), Code::kInvalid);
}

TEST_F(WriterTest, AForkedProcessHasNoWriterAndHoldsNoLock) {
  int says[2];
  ASSERT_EQ(::pipe(says), 0);
  std::optional<Writer> writer(At("out"));
  Add(*writer, Samples(1)[0]);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(says[1]);
    const bool good = CodeOf([&] { writer->flush(); }) == Code::kState && !writer->has("set/0");
    writer.reset();
    char byte;
    while (::read(says[0], &byte, 1) > 0) {
    }
    ::_exit(good ? 0 : 1);
  }
  writer->flush();
  writer.reset();
  EXPECT_TRUE(Writer(At("out")).has("set/0"));  // while the child has the descriptor
  ::close(says[1]);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// Who came back while the parts are packed would lose what it wrote.
TEST_F(WriterTest, AWorkerCannotComeBackBeforeTheJobHasEnded) {
  std::ofstream(At("program"))
      << "#!/bin/sh\n[ \"$1\" = --version ] && exec '" << ::getenv("SHARDPACK_PACK")
      << "' --version\ntrap 'exit 130' INT\nwhile :; do sleep 0.01; done\n";
  fs::permissions(At("program"), fs::perms::owner_all);
  ::setenv("SHARDPACK_PACK", At("program").c_str(), 1);
  const WriterOptions first{.worker = 0, .workers = 2}, second{.worker = 1, .workers = 2};
  { Writer two(At("out"), second); }
  Job job;
  {
    Writer one(At("out"), first);
    one.add("a", {}, images_[0]);
    job = one.finish();
  }
  for (const WriterOptions& options : {first, second})
    EXPECT_EQ(CodeOf([&] { Writer(At("out"), options); }), Code::kState);
  job.cancel();
  EXPECT_EQ(job.wait(), 130);
  EXPECT_TRUE(Writer(At("out"), first).has("a"));
}

TEST_F(WriterTest, OnlyWhatWasPackedIsRemoved) {
  std::ofstream(At("program")) << "#!/bin/sh\n[ \"$1\" = --version ] && exec '"
                               << ::getenv("SHARDPACK_PACK") << "' --version\nwhile [ ! -e '"
                               << At("go") << "' ]; do sleep 0.01; done\n";
  fs::permissions(At("program"), fs::perms::owner_all);
  ::setenv("SHARDPACK_PACK", At("program").c_str(), 1);
  Writer one(At("out"));
  one.add("a", {}, images_[0]);
  const WriterOptions late{.worker = 7, .workers = 8};
  std::string message;
  {
    Writer other(At("out"), late);
    EXPECT_EQ(CodeOf([&] { one.finish(); }, &message), Code::kState);
    EXPECT_THAT(message, HasSubstr("worker 7"));
  }
  Job job = one.finish();
  EXPECT_EQ(CodeOf([&] { Writer(At("out"), late); }), Code::kState);
  Writer next(At("out"), {.worker = 8, .workers = 9});  // of which the finish knows nothing
  next.add("b", {}, images_[1]);
  next.flush();
  std::ofstream(At("go")) << "!";
  EXPECT_EQ(job.wait(), 0);
  EXPECT_FALSE(fs::exists(At("out.parts/w00000-000000.tfrecord")));
  EXPECT_FALSE(fs::exists(At("out.parts/manifest.json")));
  next = Writer();
  Writer again(At("out"), {.worker = 8, .workers = 9});
  EXPECT_TRUE(again.has("b"));
  EXPECT_FALSE(again.has("a"));
}

TEST_F(WriterTest, RecordsAreNotNumberedBeyond32Bits) {
  Writer writer(At("out"));
  writer.add("a", {}, images_[0]);
  std::ofstream(At("out.parts/w00001-000000.json"))
      << R"({"records":4294967295,"bytes":1,"xxh3_128":")" << std::string(32, '0')
      << R"(","classes":[]})";
  std::string message;
  EXPECT_EQ(CodeOf([&] { writer.finish(); }, &message), Code::kUnsupported);
  EXPECT_THAT(message, HasSubstr("at most 4294967295 samples"));
}

TEST_F(WriterTest, AKeyOfTwoWorkersIsNamed) {
  Writer one(At("out"), {.worker = 0, .workers = 2});
  {
    Writer two(At("out"), {.worker = 1, .workers = 2});
    two.add("same", {}, images_[0]);
    two.flush();
  }
  one.add("same", {}, images_[1]);
  std::string message;
  EXPECT_EQ(CodeOf([&] { one.finish(); }, &message), Code::kExists);
  EXPECT_THAT(message, HasSubstr("two writers have added the key same"));
}

TEST_F(WriterTest, DamageBetweenAddAndFinishIsFound) {
  Writer writer(At("out"));
  for (const Sample& sample : Samples(6)) Add(writer, sample);
  writer.flush();
  const std::string part = At("out.parts/w00000-000000.tfrecord");
  std::fstream(part, std::ios::in | std::ios::out | std::ios::binary).seekp(200).write("?", 1);
  Job job = writer.finish();
  EXPECT_EQ(job.wait(), 4);
  EXPECT_FALSE(fs::exists(At("out") + "/manifest.json"));
  EXPECT_TRUE(fs::exists(part));
}

TEST_F(WriterTest, SamplesThatCannotBeHeldChangeNothing) {
  Writer writer(At("out"), {.arguments = {"--format=tfrecord"}});
  const auto add = [&](const std::string& key, const std::vector<shardpack_field>& fields) {
    return CodeOf([&] { writer.add(key, {}, fields); });
  };
  const shardpack_field image{nullptr, images_[0].data(), images_[0].size()};
  EXPECT_EQ(add("", {image}), Code::kInvalid);
  EXPECT_EQ(add(std::string("a\0b", 3), {image}), Code::kInvalid);
  EXPECT_EQ(add("k", {}), Code::kInvalid);
  EXPECT_EQ(add("k", {{"txt", "x", 1}}), Code::kInvalid);
  EXPECT_EQ(add("k", {image, image}), Code::kInvalid);
  EXPECT_EQ(add("k", {{nullptr, nullptr, 5}}), Code::kInvalid);
  EXPECT_EQ(CodeOf([&] { writer.finish(); }), Code::kState);  // no sample
  // Keys and labels are bytes, and are no paths.
  writer.add("../a//b\xFF", "caf\xC3\xA9", images_[0]);
  writer.add("..", {}, images_[1]);
  Finish(writer);
  const Dataset data(At("out"));
  EXPECT_EQ(data.samples(), 2u);
  EXPECT_THAT(data.classes(), ElementsAre("caf\xC3\xA9"));
}

// As rows of a table, with the same bytes in the end.
TEST_F(WriterTest, ManyAreAddedAtOnce) {
  const std::vector<Sample> samples = Samples(20);
  Writer one(At("one"));
  for (const Sample& sample : samples) Add(one, sample);
  Finish(one);
  std::string bytes;
  std::vector<uint64_t> lengths;
  const auto put = [&](std::string_view value) {
    bytes += value;
    lengths.push_back(value.size());
  };
  const std::string_view refused = "../x";
  for (const std::string_view first : {std::string_view(samples[0].key), refused}) {
    const Sample& sample = samples[0];
    put(first);
    put(sample.label.value_or(""));
    put(sample.image);
    put(sample.caption);
  }
  for (size_t n = 1; n < samples.size(); ++n) {
    put(samples[n].key);
    put(samples[n].label.value_or(""));
    put(samples[n].image);
    if (samples[n].caption.empty()) {
      lengths.push_back(~uint64_t{0});
    } else {
      put(samples[n].caption);
    }
  }
  const char* const names[] = {"txt"};
  shardpack_samples table = {sizeof table, samples.size() + 1, names,         1,
                             bytes.data(), bytes.size(),       lengths.data()};
  Writer many(At("many"));
  std::string message;
  EXPECT_EQ(CodeOf([&] { many.add_many(table); }, &message), Code::kInvalid);
  EXPECT_THAT(message, HasSubstr("\"../x\""));  // and all others are there
  EXPECT_EQ(CodeOf([&] { many.add_many(table); }, &message), Code::kExists);
  Finish(many);
  EXPECT_EQ(Files(At("one")), Files(At("many")));

  Writer none(At("none"));
  --table.byte_count;
  EXPECT_EQ(CodeOf([&] { none.add_many(table); }), Code::kInvalid);
  table.byte_count += 2;
  EXPECT_EQ(CodeOf([&] { none.add_many(table); }), Code::kInvalid);
  table.byte_count -= 1;
  table.lengths = nullptr;
  EXPECT_EQ(CodeOf([&] { none.add_many(table); }), Code::kInvalid);
  table.lengths = lengths.data();
  table.bytes = nullptr;
  EXPECT_EQ(CodeOf([&] { none.add_many(table); }), Code::kInvalid);
  table.bytes = bytes.data();
  lengths[0] = ~uint64_t{0};
  EXPECT_EQ(CodeOf([&] { none.add_many(table); }), Code::kInvalid);
  EXPECT_EQ(shardpack_writer_add_many(none.get(), nullptr, nullptr), SHARDPACK_INVALID);
  none.flush();
  EXPECT_FALSE(none.has(samples[1].key));
}

TEST_F(WriterTest, WholeNumbersAreLabels) {
  Writer writer(At("out"));
  writer.add("a", "10", images_[0]);
  writer.add("b", "2", images_[1]);
  Finish(writer);
  EXPECT_EQ(Dataset(At("out")).classes().size(), 11u);
  EXPECT_EQ(Dataset(At("out")).classes()[10], "10");
  Writer names(At("names"));
  names.add("a", "10", images_[0]);
  names.add("b", "02", images_[1]);
  Finish(names);
  EXPECT_THAT(Dataset(At("names")).classes(), ElementsAre("02", "10"));
}

// The process that had begun it was killed, and its program has published.
TEST_F(WriterTest, AFinishThatWasKilledIsEndedByTheNext) {
  Writer writer(At("out"), {.arguments = {"--expect=" + std::string(32, '0')}});
  writer.add("a", {}, images_[0]);
  EXPECT_NE(writer.finish().wait(), 0);
  writer = Writer();
  EXPECT_EQ(Job({"convert", "--out", At("out"), At("out.parts")}).wait(), 0);
  Writer next(At("out"));
  EXPECT_TRUE(next.has("a"));
  Finish(next);
  EXPECT_FALSE(fs::exists(At("out.parts")));
}

TEST_F(WriterTest, EveryFormatRefusesWhatItCannotHold) {
  struct Case {
    std::vector<std::string> arguments;
    std::string key;
    const char *field, *why;
  };
  for (const auto& [arguments, key, field, why] :
       {Case{{"--format=npy", "--encode=raw"}, "a", "txt", "npy holds images alone"},
        Case{{"--format=lmdb"}, "a", "txt", "lmdb holds images alone"},
        Case{{"--format=lmdb", "--layout=raw"}, std::string(512, 'k'), nullptr, "at most 511"},
        Case{{"--format=hdf5"}, "a", "labels", "hdf5 cannot hold a field named labels"},
        Case{{"--format=hdf5"}, std::string(1025, 'k'), nullptr, "at most 1024"},
        Case{{"-fhdf5", "--layout=decoded"}, "a", "txt", "hdf5 holds images alone"}}) {
    Writer writer(At("out"), {.arguments = arguments});
    std::vector<shardpack_field> fields = {{nullptr, images_[0].data(), images_[0].size()}};
    if (field != nullptr) fields.push_back({field, "x", 1});
    std::string message;
    EXPECT_EQ(CodeOf([&] { writer.add(key, {}, fields); }, &message), Code::kInvalid) << why;
    EXPECT_THAT(message, HasSubstr(why));
  }
  Writer dropped(At("out"), {.arguments = {"--format=lmdb", "--drop-fields"}});
  dropped.add("a", {}, {{nullptr, images_[0].data(), images_[0].size()}, {"txt", "x", 1}});
  Finish(dropped);
}

// By the rule of the writer that the finish packs with, when it can still be put right.
TEST_F(WriterTest, WhatTheFormatCannotHoldIsRefusedWhenItIsAdded) {
  Writer writer(At("out"));
  std::string message;
  const auto add = [&](Writer& to, const std::string& key, const char* field) {
    return CodeOf(
        [&] {
          to.add(key, "cat", {{nullptr, images_[0].data(), images_[0].size()}, {field, "1", 1}});
        },
        &message);
  };
  EXPECT_EQ(add(writer, "../../x", "txt"), Code::kInvalid);
  EXPECT_THAT(message, HasSubstr("\"..\" component"));
  for (const char* field : {"../y", "TXT", "cls", "jpg"})
    EXPECT_EQ(add(writer, "a", field), Code::kInvalid) << field;
  EXPECT_THAT(message, HasSubstr("two fields \"jpg\""));
  EXPECT_EQ(add(writer, std::string(150, 'k'), "txt"), Code::kInvalid);
  EXPECT_EQ(add(writer, "a", "txt"), Code::kOk);
  Finish(writer);
  EXPECT_EQ(Dataset(At("out")).samples(), 1u);

  // As the arguments say.
  Writer pax(At("pax"),
             {.arguments = {"-f", "webdataset", "--layout=pax", "--image-field", "img"}});
  EXPECT_EQ(add(pax, std::string(150, 'k'), "jpg"), Code::kOk);
  EXPECT_EQ(add(pax, "../x", "jpg"), Code::kInvalid);
  Finish(pax);
  Writer json(At("json"), {.arguments = {"--with-json"}});
  EXPECT_EQ(add(json, "a", "json"), Code::kInvalid);
  Writer number(At("number"), {.arguments = {"--key=index"}});
  EXPECT_EQ(add(number, "../x", "txt"), Code::kOk);
  Finish(number);
  EXPECT_EQ(Dataset(At("number")).key(0), "000000000");
}

TEST_F(WriterTest, ADatasetIsReplacedOnRequest) {
  {
    Writer writer(At("out"));
    writer.add("old", {}, images_[0]);
    Finish(writer);
  }
  Writer writer(At("out"), {.arguments = {"--overwrite"}});
  writer.add("new", {}, images_[1]);
  EXPECT_EQ(Dataset(At("out")).key(0), "old");
  Finish(writer);
  EXPECT_EQ(Dataset(At("out")).key(0), "new");
}

TEST_F(WriterTest, AWorkingFolderThatIsGoneIsAnErrorOfTheSystem) {
  const fs::path before = fs::current_path();
  fs::create_directories(At("gone"));
  fs::current_path(At("gone"));
  fs::remove(At("gone"));
  shardpack_writer* writer = nullptr;
  EXPECT_EQ(shardpack_writer_open("out", nullptr, &writer, nullptr), SHARDPACK_NOT_FOUND);
  fs::current_path(before);
}

TEST_F(WriterTest, NullsAreRefused) {
  shardpack_writer* writer = nullptr;
  shardpack_job* job = nullptr;
  EXPECT_EQ(shardpack_writer_open(nullptr, nullptr, &writer, nullptr), SHARDPACK_INVALID);
  EXPECT_EQ(shardpack_writer_open("", nullptr, &writer, nullptr), SHARDPACK_INVALID);
  EXPECT_EQ(shardpack_writer_open("/", nullptr, &writer, nullptr), SHARDPACK_INVALID);
  EXPECT_EQ(shardpack_writer_add(nullptr, "k", 1, nullptr, nullptr, 0, nullptr), SHARDPACK_INVALID);
  EXPECT_EQ(shardpack_writer_has(nullptr, "k", 1, nullptr), SHARDPACK_INVALID);
  EXPECT_EQ(shardpack_writer_flush(nullptr, nullptr), SHARDPACK_INVALID);
  EXPECT_EQ(shardpack_writer_finish(nullptr, &job, nullptr), SHARDPACK_INVALID);
  shardpack_writer_release(nullptr);
}

}  // namespace
}  // namespace shardpack_api

#include "formats/lmdb/writing/lmdb_writer.h"

#include <errno.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/lmdb/lmdb_format.h"
#include "formats/lmdb/reading/lmdb_pages.h"
#include "formats/testing/fault_injection.h"
#include "formats/testing/sample_generator.h"
#include "formats/testing/scratch_folder.h"
#include "formats/testing/test_shard.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using testing::FaultInjection;
using testing::GenerateSamples;
using testing::OwnedSample;
using testing::Random;
using testing::ScanBytes;
using testing::ScanResult;
using testing::ScratchFolder;
using testing::WriteShard;
using namespace std::string_view_literals;

OwnedSample SampleOf(uint64_t number, std::string path, std::string image, int64_t label) {
  OwnedSample sample;
  sample.number = number;
  sample.key = absl::StrCat("key", number);
  sample.source_path = std::move(path);
  sample.label = label;
  sample.fields = {{"image", std::move(image)}};
  return sample;
}

std::string Write(const ShardSpec& spec, const std::vector<OwnedSample>& samples) {
  const ScratchFolder scratch;
  const auto bytes = WriteShard(kLmdbFormat, spec, samples, scratch.File("shard"));
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.ok() ? *bytes : "";
}

absl::Status Refusal(const ShardSpec& spec, const OwnedSample& sample) {
  const ScratchFolder scratch;
  return WriteShard(kLmdbFormat, spec, {&sample, 1}, scratch.File("shard")).status();
}

TEST(LmdbWriter, TheBytesOfEachLayout) {
  const std::vector<OwnedSample> samples = {SampleOf(7, "cat/a.jpg", "\xff\xd8", 5),
                                            SampleOf(12345678, "dog/b.jpg", "\xff\xd9", kNoLabel)};
  const std::string caffe = Write({}, samples);
  EXPECT_NE(caffe.find("00000007_cat/a.jpg\x22\x02\xff\xd8\x28\x05\x38\x01"sv), caffe.npos);
  EXPECT_NE(caffe.find("12345678_dog/b.jpg\x22\x02\xff\xd9\x28"
                       "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x38\x01"sv),
            caffe.npos);
  const std::string raw = Write({.layout = "raw"}, {samples[0]});
  EXPECT_NE(raw.find("key7\xff\xd8"sv), raw.npos);
  const std::string pickle = Write({.layout = "pickle"}, samples);
  EXPECT_NE(pickle.find("0\x80\x03"
                        "C\x02\xff\xd8K\x05\x86."sv),
            pickle.npos);
  EXPECT_NE(pickle.find("1\x80\x03"
                        "C\x02\xff\xd9J\xff\xff\xff\xff\x86."sv),
            pickle.npos);
  EXPECT_NE(pickle.find("__keys__\x80\x03](C\x01"
                        "0C\x01"
                        "1e."sv),
            pickle.npos);
  EXPECT_NE(pickle.find("__len__\x80\x03K\x02."sv), pickle.npos);
}

TEST(LmdbWriter, ALongPathIsCut) {
  const std::string path(600, 'p');
  const ScanResult scan = ScanBytes(kLmdbFormat, Write({}, {SampleOf(0, path, "\xff\xd8\xff", 0),
                                                            SampleOf(1, path, "\xff\xd8\xff", 0)}));
  EXPECT_EQ(scan.Complaints(), "");
  ASSERT_EQ(scan.records.size(), 2u);
  EXPECT_EQ(scan.records[0].source_path, path.substr(0, 502));
}

TEST(LmdbWriter, WhatALayoutCannotHold) {
  const auto refused = [](const ShardSpec& spec, const OwnedSample& sample) {
    const absl::Status status = Refusal(spec, sample);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  EXPECT_NE(refused({}, SampleOf(100'000'000, "p", "i", 0)).find("key100000000"),
            std::string::npos);
  refused({}, SampleOf(0, "p", "i", int64_t{1} << 31));
  refused({.layout = "pickle"}, SampleOf(0, "p", "i", -(int64_t{1} << 31) - 1));
  refused({.layout = "raw"}, SampleOf(0, "p", "", 0));
  OwnedSample two = SampleOf(0, "p", "i", 0);
  two.fields.emplace_back("txt", "text");
  EXPECT_NE(refused({}, two).find("2 fields"), std::string::npos);
  refused({.layout = "caffe2"}, SampleOf(0, "p", "i", 0));
  refused({.image_field = "jpg"}, SampleOf(0, "p", "i", 0));
}

TEST(LmdbWriter, KeysOutOfOrderAreRefusedAndChangeNothing) {
  const ScratchFolder scratch;
  auto file = StagedFile::Create(scratch.File("shard"));
  const ShardSpec spec{.layout = "raw"};
  auto writer = kLmdbFormat.create(**file, spec);
  OwnedSample sample = SampleOf(5, "p", "\xff\xd8\xff", 0);
  EXPECT_TRUE((*writer)->Append(sample.Borrow().view).ok());
  EXPECT_TRUE(absl::IsInvalidArgument((*writer)->Append(sample.Borrow().view)));
  sample.key = "a";
  EXPECT_TRUE(absl::IsInvalidArgument((*writer)->Append(sample.Borrow().view)));
  sample.key = "z";
  EXPECT_TRUE((*writer)->Append(sample.Borrow().view).ok());
  EXPECT_TRUE((*writer)->Finish().ok());
}

// More than one batch, and more than the initial map for an unknown total.
TEST(LmdbWriter, ManyCommitsAndAGrowingMap) {
  const ScratchFolder scratch;
  Random random(9);
  const std::string image = testing::MakeRandomPayload(300'000, random);
  std::string first;
  for (const char* name : {"first", "second"}) {
    auto file = StagedFile::Create(scratch.File(name));
    auto writer = kLmdbFormat.create(**file, ShardSpec{});
    ASSERT_TRUE(writer.ok());
    for (uint64_t i = 0; i < 100; ++i) {
      const OwnedSample sample =
          SampleOf(i, absl::StrCat("p", i), image.substr(0, i % 3 == 0 ? 800 : 300'000), 1);
      const testing::BorrowedSample borrowed = sample.Borrow();
      ASSERT_TRUE((*writer)->Append(borrowed.view).ok());
    }
    ASSERT_TRUE((*writer)->Finish().ok());
    const std::string bytes = *ReadWholeFile(scratch.File(name), 100 << 20);
    const ScanResult scan = ScanBytes(kLmdbFormat, bytes);
    EXPECT_EQ(scan.Complaints(), "");
    EXPECT_EQ(scan.records.size(), 100u);
    LmdbMeta meta;
    ASSERT_EQ(ParseMeta(AsBytes(bytes), 0, meta), nullptr);
    EXPECT_GT(meta.transaction, 3u);
    EXPECT_GE(meta.map_bytes, bytes.size());
    EXPECT_LT(meta.map_bytes, 2 * bytes.size());
    if (first.empty()) first = bytes;
    EXPECT_EQ(bytes, first);
  }
}

TEST(LmdbWriter, LeavesNoOtherFile) {
  const ScratchFolder scratch;
  for (const char* layout : {"caffe", "raw", "pickle"}) {
    ASSERT_TRUE(
        WriteShard(kLmdbFormat, {.layout = layout}, GenerateSamples(), scratch.File(layout)).ok());
  }
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(scratch.path())) {
    files += entry.is_regular_file() ? 1 : 0;
  }
  EXPECT_EQ(files, 3u);
}

TEST(PickleWriter, TakesThePlaceOfAKilledOne) {
  const ScratchFolder scratch;
  const std::vector<OwnedSample> samples = GenerateSamples({.count = 20});
  std::ofstream(scratch.File("shard.part.values")) << "what it left behind";
  EXPECT_TRUE(WriteShard(kLmdbFormat, {.layout = "pickle"}, samples, scratch.File("shard")).ok());
  EXPECT_EQ(scratch.Names(), std::vector<std::string>{"shard"});
}

TEST(PickleWriter, AFullDiskIsSaid) {
  const std::vector<OwnedSample> samples = GenerateSamples({.count = 40});
  for (const uint64_t room : {0, 1000}) {
    const ScratchFolder scratch;
    FaultInjection faults;
    faults.FailWritesAfter(room, ENOSPC);
    const absl::Status status =
        WriteShard(kLmdbFormat, {.layout = "pickle"}, samples, scratch.File("full")).status();
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  }
}

}  // namespace
}  // namespace shardpack

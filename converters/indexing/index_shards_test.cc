#include "converters/indexing/index_shards.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "converters/publishing/index_mark.h"
#include "formats/core/shard_index.h"
#include "formats/io/file.h"
#include "formats/testing/datasets/test_dataset.h"
#include "formats/testing/datasets/toy_format.h"
#include "formats/testing/fault_injection.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "readers/dataset/dataset.h"

namespace shardpack {
namespace {

using ::shardpack::testing::IndexTestShard;
using ::shardpack::testing::MakeTestFolder;
using ::shardpack::testing::MakeTestSamples;
using ::shardpack::testing::ReadTestFile;
using ::shardpack::testing::TestSample;
using ::shardpack::testing::ToyFormat;
using ::shardpack::testing::WriteTestFile;
using ::shardpack::testing::WriteTestShard;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const Format* const kToy[] = {&ToyFormat()};
constexpr size_t kShards = 5, kRecords = 7;

// {name: bytes} of all files below the folder.
std::map<std::string, std::string> Contents(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().lexically_relative(folder).native();
    files[name] = entry.is_regular_file() ? ReadTestFile(entry.path().native()) : "";
  }
  return files;
}

class IndexShardsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = MakeTestFolder("index");
    in_ = folder_ + "/in";
    out_ = folder_ + "/out";
    std::filesystem::create_directory(in_);
    samples_ = MakeTestSamples({.shards = kShards, .records_per_shard = kRecords});
    for (size_t s = 0; s < kShards; ++s) WriteShard(s);
  }
  void TearDown() override { (void)RemoveTree(folder_); }

  std::string ShardPath(size_t s) const { return absl::StrCat(in_, "/part-", s, ".toy"); }
  void WriteShard(size_t s) {
    const auto first = samples_.begin() + static_cast<ptrdiff_t>(s * kRecords);
    WriteTestShard(ShardPath(s), ToyFormat(), {first, first + kRecords});
  }
  absl::StatusOr<IndexReport> IndexInPlace(IndexOptions options = {}) {
    const std::vector<std::string> paths = {in_};
    options.jobs = 3;
    options.fsync = false;
    IndexProgress progress;
    return IndexShards(paths, kToy, options, progress, stop_);
  }
  absl::StatusOr<IndexReport> IndexTo(const std::string& out) { return IndexInPlace({.out = out}); }

  std::string folder_, in_, out_;
  std::vector<TestSample> samples_;
  std::atomic<int> stop_{0};
};

TEST_F(IndexShardsTest, EverySampleIsReadFromWhereItLies) {
  const std::map<std::string, std::string> before = Contents(in_);
  absl::StatusOr<IndexReport> report = IndexTo(out_);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_FALSE(report->unchanged);
  EXPECT_EQ(Contents(in_), before) << "nothing is written beside the shards";
  const absl::StatusOr<Dataset> dataset = Dataset::Open(out_);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_TRUE(dataset->manifest()->indexed_in_place());
  EXPECT_EQ(dataset->identity(), report->manifest.Identity());
  ASSERT_EQ(dataset->size(), samples_.size());
  for (uint64_t id = 0; id < samples_.size(); ++id) {
    const absl::StatusOr<OwnedSample> sample = dataset->Read(id);
    ASSERT_TRUE(sample.ok()) << sample.status();
    EXPECT_EQ(sample->key, samples_[id].key);
    EXPECT_EQ(sample->label, samples_[id].label);
    EXPECT_EQ(sample->fields[0].bytes, samples_[id].image);
  }
  EXPECT_THAT(dataset->classes(), IsEmpty());
  EXPECT_THAT(dataset->manifest()->splits, ElementsAre(::testing::Pair("train", samples_.size())));
  // The whole folder may be moved.
  std::filesystem::create_directory(folder_ + "/moved");
  for (const char* name : {"in", "out"})
    std::filesystem::rename(folder_ + "/" + name, folder_ + "/moved/" + name);
  EXPECT_TRUE(Dataset::Open(folder_ + "/moved/out")->Read(0).ok());
}

TEST_F(IndexShardsTest, BesideTheShards) {
  WriteTestFile(in_ + "/README", "of the other tool");
  ASSERT_TRUE(IndexInPlace().ok());
  const std::map<std::string, std::string> files = Contents(in_);
  EXPECT_EQ(files.size(), 2 * kShards + 2) << "shards, indexes, manifest.json, README";
  const absl::StatusOr<Dataset> dataset = Dataset::Open(in_);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ(dataset->Read(9)->fields[0].bytes, samples_[9].image);
  EXPECT_TRUE(dataset->manifest()->shards[0].location.empty());
  EXPECT_EQ(dataset->manifest()->files.size(), 2 * kShards);
}

TEST_F(IndexShardsTest, TheImagesAreProbed) {
  // The header of a GIF of 3 x 2 pixels.
  samples_[0].image = std::string("GIF89a\3\0\2\0\0\0\0;", 14);
  WriteShard(0);
  const absl::StatusOr<IndexReport> report = IndexTo(out_);
  const absl::StatusOr<Dataset> dataset = Dataset::Open(out_);
  ASSERT_TRUE(dataset.ok()) << report.status();
  EXPECT_EQ(dataset->Read(0)->image.format, ImageFormat::kGif);
  EXPECT_EQ(dataset->Read(0)->image.width, 3u);
  EXPECT_EQ(dataset->Read(0)->image.height, 2u);
  EXPECT_EQ(report->manifest.facts.image_formats.at("gif"), 1u);
  EXPECT_EQ(report->manifest.facts.max_width, 3u);
  // The others only begin like a JPEG.
  EXPECT_THAT(report->warnings, Contains(HasSubstr("34 samples have no image whose size")));
}

TEST_F(IndexShardsTest, AgainIsUnchanged) {
  const Digest identity = IndexTo(out_)->manifest.Identity();
  const std::map<std::string, std::string> before = Contents(out_);
  const absl::StatusOr<IndexReport> again = IndexTo(out_);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->unchanged);
  EXPECT_EQ(again->manifest.Identity(), identity);
  EXPECT_EQ(Contents(out_), before);
  EXPECT_FALSE(IndexInPlace({.out = out_, .overwrite = true})->unchanged);
  EXPECT_EQ(Contents(out_), before);
}

// Older versions named an index after the full name of its shard.
TEST_F(IndexShardsTest, AnOlderVersionsIndexIsUnchangedUntilOverwritten) {
  ASSERT_TRUE(IndexInPlace().ok());
  const std::map<std::string, std::string> whole = Contents(in_);
  Manifest old = *Manifest::Read(in_);
  std::filesystem::remove(in_ + "/manifest.json");
  for (ManifestShard& shard : old.shards) {
    const std::string was = shard.index.name;
    shard.index.name = shard.name + ".pidx";
    std::filesystem::rename(in_ + "/" + was, in_ + "/" + shard.index.name);
    for (FileEntry& file : old.files) {
      if (file.name == was) file.name = shard.index.name;
    }
  }
  std::sort(old.files.begin(), old.files.end(),
            [](const FileEntry& a, const FileEntry& b) { return a.name < b.name; });
  WriteTestFile(in_ + "/manifest.json", old.ToJson());
  EXPECT_EQ(Dataset::Open(in_)->Read(8)->fields[0].bytes, samples_[8].image);
  const absl::StatusOr<IndexReport> again = IndexInPlace();
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->unchanged);
  ASSERT_TRUE(IndexInPlace({.overwrite = true}).ok());
  EXPECT_EQ(Contents(in_), whole);
}

// An older version kept labels that start at 1 as they are stored.
TEST_F(IndexShardsTest, AnOlderVersionsLabelsAreToldUntilOverwritten) {
  ASSERT_TRUE(IndexInPlace().ok());
  const std::map<std::string, std::string> whole = Contents(in_);
  Manifest old = *Manifest::Read(in_);
  old.label_base = 1;
  for (ManifestShard& shard : old.shards) {
    std::vector<TestSample> samples(samples_.begin() + (&shard - old.shards.data()) * kRecords,
                                    samples_.begin() + (&shard - old.shards.data() + 1) * kRecords);
    for (TestSample& sample : samples) --sample.label;
    const std::string bytes =
        IndexTestShard(absl::StrCat(in_, "/", shard.name), ToyFormat(), samples);
    WriteTestFile(absl::StrCat(in_, "/", shard.index.name), bytes);
    shard.index = {shard.index.name, bytes.size(), Xxh3_128(AsBytes(bytes))};
    for (FileEntry& file : old.files) {
      if (file.name == shard.index.name) file = shard.index;
    }
  }
  WriteTestFile(in_ + "/manifest.json", old.ToJson());
  const absl::Status refused = IndexInPlace().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(refused.message(),
              HasSubstr("labels count from 0, its index took them as counting from 1, so that "
                        "each is 1 too low"));
  EXPECT_THAT(refused.message(), Not(HasSubstr("in another way"))) << "that is why";
  ASSERT_TRUE(IndexInPlace({.overwrite = true}).ok());
  EXPECT_EQ(Contents(in_), whole);
}

TEST_F(IndexShardsTest, ChangedShardsAreAConflictUntilOverwritten) {
  ASSERT_TRUE(IndexTo(out_).ok());
  const std::map<std::string, std::string> before = Contents(out_);
  samples_[8].image.back() ^= 1;
  WriteShard(1);
  std::filesystem::remove(ShardPath(4));
  const absl::Status refused = IndexTo(out_).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("part-1.toy has changed"));
  EXPECT_THAT(refused.message(), HasSubstr("part-4.toy is not given any more"));
  EXPECT_EQ(Contents(out_), before);
  EXPECT_TRUE(absl::IsDataLoss(Dataset::Open(out_).status()));
  ASSERT_TRUE(IndexInPlace({.out = out_, .overwrite = true}).ok());
  EXPECT_EQ(Dataset::Open(out_)->Read(8)->fields[0].bytes, samples_[8].image);
  EXPECT_EQ(Contents(out_).size(), kShards) << "no index of the shard that is gone";
  for (const auto& [what, options] : std::map<std::string, IndexOptions>{
           {"was in the split train, is in val", {.out = out_, .split = "val"}},
           {"the classes differ", {.out = out_, .classes = {"a", "b"}}}}) {
    EXPECT_THAT(IndexInPlace(options).status().message(), HasSubstr(what));
  }
}

TEST_F(IndexShardsTest, DamageWritesNothing) {
  for (const size_t s : {1u, 3u}) {
    const std::string bytes = ReadTestFile(ShardPath(s));
    WriteTestFile(ShardPath(s), bytes.substr(0, bytes.size() - 20));
  }
  const std::map<std::string, std::string> before = Contents(folder_);
  for (const std::string& out : {std::string(), out_, out_ + "/deep/er"}) {
    const absl::Status refused = IndexTo(out).status();
    EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
    EXPECT_THAT(refused.message(), HasSubstr(ShardPath(1)));
    EXPECT_THAT(refused.message(), HasSubstr(ShardPath(3)));
    EXPECT_THAT(refused.message(), HasSubstr("offset"));
    EXPECT_EQ(Contents(folder_), before);
  }
}

// Makes each read fail once: no index may be written without the data that was not read.
TEST_F(IndexShardsTest, AReadThatFailsIsAnErrorAndWritesNothing) {
  ASSERT_TRUE(IndexTo(folder_ + "/whole").ok());
  const std::map<std::string, std::string> before = Contents(folder_);
  testing::FaultInjection faults;
  ASSERT_TRUE(IndexTo(folder_ + "/counted").ok());
  const uint64_t reads = faults.reads();
  (void)RemoveTree(folder_ + "/counted");
  for (uint64_t number = 0; number < reads; ++number) {
    faults.FailOneRead(faults.reads() + number, EIO);
    const absl::Status failed = IndexTo(out_).status();
    EXPECT_TRUE(absl::IsUnavailable(failed))
        << "read " << number << " of " << reads << ": " << failed;
    EXPECT_EQ(Contents(folder_), before) << number;
  }
}

TEST_F(IndexShardsTest, AStopWritesNothing) {
  const std::map<std::string, std::string> before = Contents(folder_);
  stop_ = SIGINT;
  EXPECT_TRUE(absl::IsCancelled(IndexTo(out_).status()));
  EXPECT_EQ(Contents(folder_), before);
}

TEST_F(IndexShardsTest, RepeatedKeysAreNamed) {
  EXPECT_THAT(IndexTo(out_)->warnings, ::testing::Not(Contains(HasSubstr("the key of"))));
  samples_[30].key = samples_[2].key;
  samples_[16].key = samples_[2].key;
  WriteShard(2);
  WriteShard(4);
  const absl::StatusOr<IndexReport> report = IndexTo(folder_ + "/twice");
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->warnings,
              Contains(HasSubstr(absl::StrCat(
                  "2 samples have the key of another one, the first: key ", samples_[2].key,
                  " of record 2 of ", ShardPath(2), " is also record 2 of ", ShardPath(0)))));
}

TEST_F(IndexShardsTest, ClassesNameTheLabels) {
  const absl::StatusOr<IndexReport> report = IndexInPlace({.out = out_, .classes = {"cat", "dog"}});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(Dataset::Open(out_)->classes(), ElementsAre("cat", "dog"));
  const absl::Status refused = IndexInPlace({.out = folder_ + "/one", .classes = {"cat"}}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("part-0.toy record 1 has the label 1"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/one"));
  EXPECT_TRUE(absl::IsInvalidArgument(IndexInPlace({.out = out_, .split = "../up"}).status()));
}

TEST_F(IndexShardsTest, WhatIsNotOursStays) {
  WriteTestFile(folder_ + "/file", "x");
  EXPECT_TRUE(absl::IsInvalidArgument(IndexTo(folder_ + "/file").status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(IndexTo(folder_).status()))
      << "not empty, not the shards'";
  // An index that pack did not make for this shard.
  WriteTestFile(in_ + "/part-3.pidx", "of a third-party tool");
  const std::map<std::string, std::string> before = Contents(in_);
  const absl::Status refused = IndexInPlace().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("part-3.pidx"));
  EXPECT_TRUE(absl::IsFailedPrecondition(IndexInPlace({.overwrite = true}).status()));
  EXPECT_EQ(Contents(in_), before);
  WriteTestFile(in_ + "/part-3.pidx", "SPKPIDX1 of another shard");
  EXPECT_TRUE(absl::IsFailedPrecondition(IndexInPlace().status()));
  EXPECT_TRUE(IndexInPlace({.overwrite = true}).ok());
}

ssize_t PreadWithoutIndexes(int fd, void* into, size_t size, off_t offset) {
  const std::string link = absl::StrCat("/proc/self/fd/", fd);
  std::error_code error;
  if (std::filesystem::read_symlink(link, error).native().ends_with("/in/part-3.pidx")) {
    errno = EIO;
    return -1;
  }
  return ::pread(fd, into, size, offset);
}

// A file that could not be read is not reported as a different file.
TEST_F(IndexShardsTest, AnIndexThatCannotBeReadIsAnError) {
  ASSERT_TRUE(IndexInPlace().ok());
  std::filesystem::remove(in_ + "/manifest.json");
  const std::map<std::string, std::string> before = Contents(in_);
  const auto pread = SyscallsForTesting().pread;
  SyscallsForTesting().pread = PreadWithoutIndexes;
  const absl::Status failed = IndexInPlace().status();
  SyscallsForTesting().pread = pread;
  EXPECT_TRUE(absl::IsUnavailable(failed)) << failed;
  EXPECT_EQ(Contents(in_), before);
  EXPECT_TRUE(IndexInPlace().ok());
}

TEST_F(IndexShardsTest, AnUnfinishedBuildStays) {
  std::filesystem::create_directories(in_ + "/.pack");
  WriteTestFile(in_ + "/.pack/plan", "SPKPLAN1");
  EXPECT_TRUE(absl::IsFailedPrecondition(IndexInPlace().status()));
  EXPECT_EQ(ReadTestFile(in_ + "/.pack/plan"), "SPKPLAN1");
}

TEST_F(IndexShardsTest, AFolderOfPackIsNoLeaveToReplace) {
  WriteTestFile(in_ + "/part-3.pidx", "of a third-party tool");
  for (const std::set<std::string>& names : {std::set<std::string>{}, {"part-0.pidx"}}) {
    std::filesystem::create_directories(in_ + "/.pack/stage");
    WriteTestFile(in_ + "/.pack/index", IndexMarkText(names));
    const absl::Status refused = IndexInPlace().status();
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_EQ(ReadTestFile(in_ + "/part-3.pidx"), "of a third-party tool");
    EXPECT_EQ(std::filesystem::exists(in_ + "/.pack/index"), !names.empty())
        << "until it is finished";
  }
}

TEST_F(IndexShardsTest, AKilledRunIsFinishedByTheNext) {
  ASSERT_TRUE(IndexInPlace().ok());
  const std::map<std::string, std::string> whole = Contents(in_);
  // Killed between the indexes and the manifest; shards changed since.
  const std::string manifest = in_ + "/manifest.json";
  std::filesystem::create_directories(in_ + "/.pack/stage");
  WriteTestFile(in_ + "/.pack/lock", "");
  WriteTestFile(in_ + "/.pack/index",
                IndexMarkText({"part-0.pidx", "part-9.pidx", "../secret.pidx"}));
  WriteTestFile(in_ + "/part-9.pidx", "SPKPIDX1 of a shard that is gone");
  WriteTestFile(folder_ + "/secret.pidx", "SPKPIDX1 not in this folder");
  std::filesystem::rename(manifest, in_ + "/.pack/stage/manifest.json");
  WriteTestFile(in_ + "/part-0.pidx", "SPKPIDX1 half");
  EXPECT_TRUE(absl::IsDataLoss(Dataset::Open(in_, kToy).status()));
  ASSERT_TRUE(IndexInPlace().ok());
  EXPECT_EQ(Contents(in_), whole);
  EXPECT_EQ(ReadTestFile(folder_ + "/secret.pidx"), "SPKPIDX1 not in this folder");
  // Killed after the manifest.
  std::filesystem::create_directories(in_ + "/.pack/stage");
  EXPECT_TRUE(IndexInPlace()->unchanged);
  EXPECT_EQ(Contents(in_), whole);
}

}  // namespace
}  // namespace shardpack

#include "converters/indexing/find_shards.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "converters/sources/shard_splits.h"
#include "formats/io/file.h"
#include "formats/testing/datasets/test_dataset.h"
#include "formats/testing/datasets/toy_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::shardpack::testing::MakeTestFolder;
using ::shardpack::testing::MakeTestSamples;
using ::shardpack::testing::ToyFormat;
using ::shardpack::testing::WriteTestDataset;
using ::shardpack::testing::WriteTestFile;
using ::shardpack::testing::WriteTestShard;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Format* const kToy[] = {&ToyFormat()};

class FindShardsTest : public ::testing::Test {
 protected:
  void SetUp() override { folder_ = std::filesystem::canonical(MakeTestFolder("shards")).native(); }
  void TearDown() override { (void)RemoveTree(folder_); }

  std::string Shard(const std::string& name) {
    const std::string path = absl::StrCat(folder_, "/", name);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    WriteTestShard(path, ToyFormat(), MakeTestSamples({.shards = 1, .records_per_shard = 1}));
    return path;
  }
  absl::StatusOr<FoundShards> Find(std::vector<std::string> paths,
                                   const FindShardsOptions& options = {}) {
    return FindShards(paths, kToy, options);
  }
  static std::vector<std::string> Names(const FoundShards& found) {
    std::vector<std::string> names;
    for (const FoundShard& shard : found.shards) names.push_back(shard.name);
    return names;
  }
  static std::vector<std::string> Locations(const FoundShards& found) {
    std::vector<std::string> locations;
    for (const FoundShard& shard : found.shards) locations.push_back(shard.location);
    return locations;
  }

  std::string folder_;
};

TEST_F(FindShardsTest, AFolderMeansItsShardsByName) {
  for (const char* name : {"in/b.toy", "in/a.toy", "in/sub/c.toy"}) Shard(name);
  WriteTestFile(folder_ + "/in/README.md", "text");
  const absl::StatusOr<FoundShards> found = Find({folder_ + "/in/"});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(Names(*found), ElementsAre("a.toy", "b.toy"));
  EXPECT_THAT(Locations(*found), ElementsAre("", ""));
  EXPECT_EQ(found->out, folder_ + "/in");
  EXPECT_TRUE(found->shards_in_out);
  EXPECT_EQ(found->other_files, 2u) << "README.md and the folder";
  EXPECT_TRUE(absl::IsInvalidArgument(Find({folder_}).status())) << "no shard in it";
  EXPECT_TRUE(absl::IsInvalidArgument(Find({folder_ + "/none"}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Find({folder_ + "/in/README.md"}).status()));
}

TEST_F(FindShardsTest, OrderIsThatOfTheCommand) {
  const std::string a = Shard("a.toy"), b = Shard("b.toy");
  EXPECT_THAT(Names(*Find({b, a})), ElementsAre("b.toy", "a.toy"));
  EXPECT_THAT(Find({a, folder_}).status().message(), HasSubstr("given twice"));
  EXPECT_THAT(Find({a, folder_ + "/./a.toy"}).status().message(), HasSubstr("given twice"));
  std::filesystem::create_hard_link(a, folder_ + "/c.toy");
  EXPECT_THAT(Find({a, folder_ + "/c.toy"}).status().message(),
              HasSubstr("c.toy is given twice, the first time as "));
}

TEST_F(FindShardsTest, LocationsAreRelativeWhereThatMakesSense) {
  const std::string a = Shard("one/a.toy"), b = Shard("two/a.toy");
  const absl::StatusOr<FoundShards> found = Find({a, b}, {.out = folder_ + "/made/deep/"});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(Names(*found), ElementsAre("a.toy", "a.toy-2"));
  EXPECT_THAT(Locations(*found), ElementsAre("../../one/a.toy", "../../two/a.toy"));
  EXPECT_EQ(found->out, folder_ + "/made/deep");
  EXPECT_FALSE(found->shards_in_out);
  EXPECT_THAT(Find({a, b}).status().message(), HasSubstr("several folders"));
  EXPECT_THAT(Locations(*Find({a}, {.out = "/nowhere/at/all"})), ElementsAre(a));
  EXPECT_THAT(Locations(*Find({a, b}, {.out = folder_ + "/one"})), ElementsAre("", "../two/a.toy"));
  EXPECT_THAT(Locations(*Find({a}, {.out = folder_})), ElementsAre("one/a.toy"));
}

TEST_F(FindShardsTest, LinksToFoldersAreResolvedLinksToShardsAreNot) {
  const std::string shard = Shard("real/deep/a.toy");
  std::filesystem::create_directory_symlink("real/deep", folder_ + "/link");
  std::filesystem::create_symlink("a.toy", folder_ + "/real/deep/named.toy");
  const absl::StatusOr<FoundShards> found =
      Find({folder_ + "/link/named.toy"}, {.out = folder_ + "/out"});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(Locations(*found), ElementsAre("../real/deep/named.toy"));
}

TEST_F(FindShardsTest, NamesThatNoManifestHoldsAreMadeOnes) {
  const std::string odd = Shard("my photos.toy"), plain = Shard("my_photos.toy"),
                    hidden = Shard(".x.toy"), manifest = Shard("manifest.json"),
                    bytes = Shard(std::string(200, 'n') + ".toy"), latin = Shard("caf\xE9.toy");
  const absl::StatusOr<FoundShards> found = Find({odd, plain, hidden, manifest, bytes, latin});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(Names(*found), ElementsAre("my_photos.toy-2", "my_photos.toy", "_x.toy",
                                         "manifest.json-2", std::string(110, 'n'), "caf_.toy"));
  EXPECT_THAT(Locations(*found), ElementsAre("my photos.toy", "", ".x.toy", "manifest.json",
                                             std::string(200, 'n') + ".toy", "caf\xE9.toy"));
}

TEST_F(FindShardsTest, IndexesAreNamedWithoutTheExtensionUnlessTwoWouldShareAName) {
  const auto indexes = [&](std::vector<std::string> paths) {
    const absl::StatusOr<FoundShards> found = Find(std::move(paths));
    std::vector<std::string> all;
    for (const FoundShard& shard : found->shards) all.push_back(shard.index_name);
    return all;
  };
  const std::string a = Shard("a.toy"), other = Shard("a.bin"), b = Shard("b.toy"),
                    bare = Shard("b"), part = Shard("part.0"), next = Shard("part.1");
  EXPECT_THAT(indexes({a, b}), ElementsAre("a.pidx", "b.pidx"));
  EXPECT_THAT(indexes({part, next, a}), ElementsAre("part.0.pidx", "part.1.pidx", "a.pidx"));
  EXPECT_THAT(indexes({a, other, b}), ElementsAre("a.toy.pidx", "a.bin.pidx", "b.toy.pidx"));
  EXPECT_THAT(indexes({b, bare}), ElementsAre("b.toy.pidx", "b.pidx"));
}

TEST_F(FindShardsTest, SplitsAreThoseThatAllNamesSay) {
  const std::string train = Shard("train-0.toy"), val = Shard("val_0.toy"), other = Shard("x.toy");
  const auto splits = [&](std::vector<std::string> paths, const std::string& split = "") {
    const absl::StatusOr<FoundShards> found = Find(std::move(paths), {.split = split});
    std::vector<std::string> all;
    for (const FoundShard& shard : found->shards) all.push_back(shard.split);
    if (found->splits_differ) all.emplace_back("differ");
    return all;
  };
  EXPECT_THAT(splits({train, val}), ElementsAre("train", "val"));
  EXPECT_THAT(splits({val}), ElementsAre("val"));
  EXPECT_THAT(splits({other}), ElementsAre("train"));
  EXPECT_THAT(splits({val, other}), ElementsAre("train", "train", "differ"));
  EXPECT_THAT(splits({val, other}, "dev"), ElementsAre("dev", "dev"));
  const std::string tfds = Shard("mnist-test.tfrecord-00000-of-00001");
  EXPECT_THAT(splits({train, tfds}), ElementsAre("train", "test"));
  EXPECT_EQ(SplitOfShardName("mnist-train.tfrecord-00000-of-00001"), "train");
  EXPECT_EQ(SplitOfShardName("a-b-validation.array_record-00010-of-00011"), "validation");
  EXPECT_EQ(SplitOfShardName("mnist-data.tfrecord-00000-of-00001"), "");
  EXPECT_EQ(SplitOfShardName("mnist-train.tfrecord"), "");
  EXPECT_EQ(SplitOfShardName("-train.tfrecord-00000-of-00001"), "");
  EXPECT_EQ(SplitOfShardName("mnist_train.tfrecord-00000-of-00001"), "");
  EXPECT_EQ(SplitOfShardName("0-of-1"), "");
  EXPECT_EQ(SplitOfShardName("train.tfrecord-00000-of-00001"), "train");
  EXPECT_EQ(SplitOfShardName("test"), "test");
  EXPECT_EQ(SplitOfShardName("validation00.tar"), "validation");
  EXPECT_EQ(SplitOfShardName("trainer-0.tar"), "");
  EXPECT_EQ(SplitOfShardName("training set.tar"), "");
  EXPECT_EQ(SplitOfShardName("Train-0.tar"), "");
}

TEST_F(FindShardsTest, WhatPackMadeNeedsNoIndex) {
  std::filesystem::create_directory(folder_ + "/packed");
  WriteTestDataset(folder_ + "/packed", ToyFormat(), {});
  EXPECT_THAT(Find({folder_ + "/packed"}).status().message(), HasSubstr("pack has made"));
}

TEST_F(FindShardsTest, CompressedShardsAreToldSo) {
  WriteTestFile(folder_ + "/a.gz", std::string("\x1f\x8b\x08\0\0", 5));
  const absl::Status refused = Find({folder_ + "/a.gz"}).status();
  EXPECT_TRUE(absl::IsUnimplemented(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("compressed as a whole (gzip)"));
  // Among others, in any position.
  for (const char* name : {"in/a.toy", "in/m.toy"}) Shard(name);
  for (const char* name : {"in/0.gz", "in/b.gz", "in/z.gz"}) {
    std::filesystem::copy_file(folder_ + "/a.gz", folder_ + "/" + name);
    const absl::Status among = Find({folder_ + "/in"}).status();
    EXPECT_TRUE(absl::IsUnimplemented(among)) << among;
    EXPECT_THAT(among.message(), HasSubstr(name));
    std::filesystem::remove(folder_ + "/" + name);
  }
  EXPECT_TRUE(Find({folder_ + "/in"}).ok());
}

TEST_F(FindShardsTest, ALinkToNothingIsNotLeftOut) {
  Shard("in/a.toy");
  for (const char* target : {"nowhere.toy", "b.toy"}) {
    std::filesystem::create_symlink(target, folder_ + "/in/b.toy");
    const absl::Status refused = Find({folder_ + "/in"}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_THAT(refused.message(), HasSubstr("in/b.toy"));
    std::filesystem::remove(folder_ + "/in/b.toy");
  }
}

}  // namespace
}  // namespace shardpack

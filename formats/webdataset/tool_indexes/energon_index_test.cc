#include "formats/webdataset/tool_indexes/energon_index.h"

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/core/manifest.h"
#include "formats/io/bytes.h"
#include "formats/io/file.h"
#include "formats/testing/scratch_folder.h"
#include "formats/testing/tar_builder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class EnergonIndex : public ::testing::Test {
 protected:
  void Add(const std::string& name, const std::string& split, const std::string& bytes) {
    absl::StatusOr<File> file = File::CreateExclusive(scratch_.File(name));
    const Bytes part = AsBytes(bytes);
    ASSERT_TRUE(file.ok() && file->Write(std::span(&part, 1)).ok());
    ManifestShard shard;
    shard.name = name;
    shard.split = split;
    shard.bytes = bytes.size();
    manifest_.shards.push_back(shard);
    manifest_.splits[split] += 1;
  }
  absl::Status Make() {
    files_.clear();
    auto files = MakeEnergonIndex({.root = scratch_.path(), .manifest = manifest_, .indexes = {}});
    if (!files.ok()) return files.status();
    for (NamedBytes& file : *files) {
      EXPECT_TRUE(IsDatasetFileName(file.name)) << file.name;
      files_[file.name] = std::move(file.bytes);
    }
    return absl::OkStatus();
  }
  std::vector<uint64_t> Offsets(const std::string& name) {
    std::vector<uint64_t> offsets;
    const std::string& bytes = files_[name];
    for (size_t at = 0; at + 8 <= bytes.size(); at += 8) {
      offsets.push_back(LoadLittle<uint64_t>(bytes.data() + at));
    }
    return offsets;
  }

  testing::ScratchFolder scratch_;
  Manifest manifest_;
  std::map<std::string, std::string> files_;
};

TEST_F(EnergonIndex, OffsetsOfTheSamplesAndTheEnd) {
  TarBuilder tar;
  tar.AddPax("mtime", "1.5").Add("a.cls", "1").Add("a.jpg", std::string(600, 'x'));
  tar.AddPax("mtime", "1.5").Add("b.jpg", "y").Add("readme", "x");
  Add("train-000000.tar", "train", tar.Finish());
  ASSERT_TRUE(Make().ok());
  // A trailing member that belongs to no sample counts: tarfile stops there.
  EXPECT_THAT(Offsets("train-000000.tar.idx"), ElementsAre(0, 3584, tar.size()));
}

TEST_F(EnergonIndex, CountsAndSplits) {
  Add("train-000001.tar", "train", TarBuilder().Add("c.jpg", "x").Finish());
  Add("train-000000.tar", "train", TarBuilder().Add("a.jpg", "x").Add("b.jpg", "x").Finish());
  Add("extra-000000.tar", "extra", TarBuilder().Add("d.jpg", "x").Finish());
  ASSERT_TRUE(Make().ok());
  EXPECT_EQ(files_.size(), 8u);
  EXPECT_EQ(
      nlohmann::json::parse(files_[".nv-meta/.info.json"]),
      nlohmann::json::parse(
          R"({"shard_counts": {"extra-000000.tar": 1, "train-000000.tar": 2, "train-000001.tar": 1}})"));
  EXPECT_EQ(files_[".nv-meta/split.yaml"],
            "split_parts:\n"
            "  \"extra\":\n  - \"extra-000000.tar\"\n"
            "  \"test\": []\n"
            "  \"train\":\n  - \"train-000001.tar\"\n  - \"train-000000.tar\"\n"
            "  \"val\": []\n"
            "exclude: []\n");
  EXPECT_THAT(scratch_.Names(),
              ElementsAre("extra-000000.tar", "train-000000.tar", "train-000001.tar"));
}

TEST_F(EnergonIndex, HowASampleIsRead) {
  Add("train-000000.tar", "train", TarBuilder().Add("a.jpg", "x").Finish());
  manifest_.classes = {"cat", "dog"};
  manifest_.facts.image_formats = {{"png", 2}, {"jpg", 1}};
  ASSERT_TRUE(Make().ok());
  EXPECT_EQ(files_[".nv-meta/dataset.yaml"],
            "sample_type:\n  __module__: megatron.energon\n"
            "  __class__: ImageClassificationSample\n"
            "field_map:\n  image: \"jpg,png\"\n  label: \"cls\"\n");
  manifest_.options["image-field"] = "img";
  manifest_.classes.clear();
  ASSERT_TRUE(Make().ok());
  EXPECT_THAT(files_[".nv-meta/dataset.yaml"], HasSubstr("field_map:\n  image: \"img\"\n"));
  EXPECT_EQ(files_[".nv-meta/dataset.yaml"].find("label"), std::string::npos);
}

TEST_F(EnergonIndex, TheUuidIsThatOfTheData) {
  Add("train-000000.tar", "train", TarBuilder().Add("a.jpg", "x").Finish());
  manifest_.shards[0].xxh3_128 = {1, 2};
  ASSERT_TRUE(Make().ok());
  const std::string uuid = files_[".nv-meta/index.uuid"];
  EXPECT_THAT(uuid,
              ::testing::MatchesRegex("[0-9a-f]+-[0-9a-f]+-8[0-9a-f]+-[89ab][0-9a-f]+-[0-9a-f]+"));
  EXPECT_EQ(uuid.size(), 36u);
  ASSERT_TRUE(Make().ok());
  EXPECT_EQ(files_[".nv-meta/index.uuid"], uuid);
  manifest_.shards[0].xxh3_128 = {1, 3};
  ASSERT_TRUE(Make().ok());
  EXPECT_NE(files_[".nv-meta/index.uuid"], uuid);
}

TEST_F(EnergonIndex, WhatEnergonRefuses) {
  Add("train-000000.tar", "train", TarBuilder().Add("a.jpg", "x").Finish());
  Add("train-000001.tar", "train", TarBuilder().Add("a.png", "x").Finish());
  EXPECT_THAT(std::string(Make().message()), HasSubstr("comes twice"));
  manifest_.shards.pop_back();
  EXPECT_TRUE(Make().ok());
  Add("train-000002.tar", "train", std::string(10240, '\0'));
  EXPECT_THAT(std::string(Make().message()), HasSubstr("train-000002.tar"));
  std::string damaged = TarBuilder().Add("a.jpg", "x").Add("b.jpg", "x").Finish();
  damaged[1024] ^= 1;
  Add("train-000003.tar", "train", damaged);
  manifest_.shards = {manifest_.shards.back()};
  EXPECT_TRUE(absl::IsDataLoss(Make()));
}

}  // namespace
}  // namespace shardpack

#include "formats/webdataset/tool_indexes/timm_info.h"

#include <nlohmann/json.hpp>

#include "formats/core/manifest.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

Manifest TwoSplits() {
  Manifest manifest;
  manifest.shards.resize(3);
  const char* const names[] = {"train-000000.tar", "train-000001.tar", "val-000000.tar"};
  for (size_t i = 0; i < 3; ++i) {
    manifest.shards[i].name = names[i];
    manifest.shards[i].split = i < 2 ? "train" : "val";
    manifest.shards[i].records = 10 + i;
  }
  manifest.splits = {{"train", 21}, {"val", 12}, {"none", 0}};
  return manifest;
}

TEST(TimmInfo, ShardsOfEachSplit) {
  const Manifest manifest = TwoSplits();
  const auto files = MakeTimmInfo({.root = "", .manifest = manifest, .indexes = {}});
  ASSERT_TRUE(files.ok() && files->size() == 1);
  EXPECT_EQ((*files)[0].name, "_info.json");
  EXPECT_EQ(nlohmann::json::parse((*files)[0].bytes), nlohmann::json::parse(R"({"splits": {
      "train": {"name": "train", "num_samples": 21,
                "filenames": ["train-000000.tar", "train-000001.tar"], "shard_lengths": [10, 11],
                "alt_label": ""},
      "val": {"name": "val", "num_samples": 12, "filenames": ["val-000000.tar"],
              "shard_lengths": [12], "alt_label": ""}}})"));
}

}  // namespace
}  // namespace shardpack

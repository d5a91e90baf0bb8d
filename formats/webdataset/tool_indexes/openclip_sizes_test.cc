#include "formats/webdataset/tool_indexes/openclip_sizes.h"

#include "formats/core/manifest.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

TEST(OpenClipSizes, SamplesOfEachShard) {
  Manifest manifest;
  manifest.shards.resize(2);
  manifest.shards[0].name = "train-000000.tar";
  manifest.shards[0].records = 7;
  manifest.shards[1].name = "test-000000.tar";
  manifest.shards[1].records = 8;
  const auto files = MakeOpenClipSizes({.root = "", .manifest = manifest, .indexes = {}});
  ASSERT_TRUE(files.ok() && files->size() == 1);
  EXPECT_EQ((*files)[0].name, "sizes.json");
  EXPECT_EQ((*files)[0].bytes, "{\n \"test-000000.tar\": 8,\n \"train-000000.tar\": 7\n}\n");
}

}  // namespace
}  // namespace shardpack

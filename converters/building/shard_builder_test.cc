// A verification that fails is in build_test.cc.
#include "converters/building/shard_builder.h"

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "converters/testing/memory_source.h"
#include "formats/core/shard_index.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/testing/datasets/toy_format.h"
#include "formats/testing/scratch_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::shardpack::testing::MemorySource;
using ::shardpack::testing::ScratchFolder;
using ::shardpack::testing::ToyFormat;
using ::testing::SizeIs;

class ShardBuilderTest : public ::testing::Test {
 protected:
  // One shard of everything.
  void SetUp() override {
    PlanOptions options;
    options.shards = 1;
    options.sha256 = true;
    plan_ = std::make_unique<Plan>(*Plan::Make(*source_.List(), options, ToyFormat()));
    OutputOptions output;
    output.fsync = false;
    absl::StatusOr<OutputDir> out = OutputDir::Open(scratch_.File("out"), *plan_, output, pool_);
    ASSERT_TRUE(out.ok()) << out.status();
    out_ = std::make_unique<OutputDir>(*std::move(out));
  }
  absl::Status Append(ShardBuilder& builder, uint64_t first, uint64_t count) {
    SampleChunk chunk(*plan_);
    chunk.Load(source_, first, count);
    chunk.Probe();
    return builder.Append(chunk);
  }
  std::string ShardPath() const { return scratch_.File("out/" + plan_->shards()[0].name); }

  ScratchFolder scratch_;
  IoPool pool_{2};
  MemorySource source_{10};
  std::unique_ptr<Plan> plan_;
  std::unique_ptr<OutputDir> out_;
};

TEST_F(ShardBuilderTest, PublishesAShardThatItHasReadBack) {
  source_.Replace(plan_->row(3), "not an image");
  auto builder = ShardBuilder::Create(*plan_, 0, *out_);
  ASSERT_TRUE(builder.ok()) << builder.status();
  ASSERT_TRUE(Append(**builder, 0, 4).ok());
  ASSERT_TRUE(Append(**builder, 4, 6).ok());
  EXPECT_FALSE(std::filesystem::exists(ShardPath()));
  const absl::StatusOr<ShardResult> result = (*builder)->Finish();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->records, 9u);
  ASSERT_THAT(result->skips, SizeIs(1));
  EXPECT_EQ(result->skips[0].row, plan_->row(3));
  EXPECT_EQ(result->facts.image_formats.at("jpg"), 9u);
  const std::string bytes = *ReadWholeFile(ShardPath(), 1 << 20);
  EXPECT_EQ(result->file.bytes, bytes.size());
  EXPECT_EQ(result->file.xxh3_128, Xxh3_128(AsBytes(bytes)));
  EXPECT_THAT(result->sha256, SizeIs(64));
  const auto index = ShardIndex::Open(scratch_.File("out/" + result->index.name), bytes.size(),
                                      result->index.xxh3_128);
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_EQ(index->records(), 9u);
}

TEST_F(ShardBuilderTest, AChunkThatCouldNotBeReadIsRefused) {
  source_.FailToRead(plan_->row(2), absl::UnavailableError("gone"));
  auto builder = ShardBuilder::Create(*plan_, 0, *out_);
  ASSERT_TRUE(builder.ok()) << builder.status();
  EXPECT_EQ(Append(**builder, 0, 10), absl::UnavailableError("gone"));
}

TEST_F(ShardBuilderTest, WhatIsNotFinishedIsRemoved) {
  const auto files = [&] {
    uint64_t count = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(out_->StageFolder()))
      count += entry.is_regular_file();
    return count;
  };
  const uint64_t before = files();
  {
    auto builder = ShardBuilder::Create(*plan_, 0, *out_);
    ASSERT_TRUE(builder.ok()) << builder.status();
    ASSERT_TRUE(Append(**builder, 0, 10).ok());
    EXPECT_EQ(files(), before + 1);
  }
  EXPECT_EQ(files(), before);
  EXPECT_FALSE(std::filesystem::exists(ShardPath()));
}

}  // namespace
}  // namespace shardpack

#include "converters/building/sample_chunk.h"

#include <string>
#include <string_view>
#include <vector>

#include "converters/testing/memory_source.h"
#include "formats/io/hash.h"
#include "formats/testing/datasets/toy_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::shardpack::testing::MemorySource;
using ::shardpack::testing::ToyFormat;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kImages = 20;

Plan MakePlan(MemorySource& source, PlanOptions options = {}) {
  options.shuffle = false;
  return *Plan::Make(*source.List(), options, ToyFormat());
}

PlanOptions LargeImages() {
  PlanOptions options;
  options.pixels.resize = ResizeMode::kExact;
  options.pixels.width = options.pixels.height = 48;
  options.compute_stats = true;
  return options;
}

std::vector<uint64_t> RowsOf(const Plan& plan, const SampleChunk& chunk) {
  std::vector<uint64_t> rows;
  for (const PreparedSample& sample : chunk.samples()) rows.push_back(plan.row(sample.position));
  return rows;
}

// Every sample has the hash of its bytes.
void CheckHashes(const SampleChunk& chunk) {
  for (const PreparedSample& sample : chunk.samples()) {
    ASSERT_EQ(chunk.hashes(sample).size(), 1u);
    EXPECT_EQ(chunk.hashes(sample)[0], Xxh3_64(sample.fields[0].bytes));
  }
}

TEST(SampleChunkTest, LoadsProbesAndHashes) {
  MemorySource source(kImages);
  const Plan plan = MakePlan(source);
  SampleChunk chunk(plan);
  chunk.Load(source, 5, 3);
  chunk.Probe();
  chunk.Hash();  // changes nothing
  ASSERT_THAT(chunk.samples(), SizeIs(3));
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < 3; ++i) {
    const PreparedSample& sample = chunk.samples()[i];
    const std::string_view want = source.bytes(plan.row(5 + i));
    EXPECT_EQ(sample.position, 5 + i);
    EXPECT_EQ(AsText(sample.fields[0].bytes), want);
    EXPECT_EQ(sample.image.format, ImageFormat::kJpeg);
    bytes += want.size();
  }
  CheckHashes(chunk);
  EXPECT_EQ(chunk.bytes_in(), bytes);
  EXPECT_TRUE(chunk.status().ok());

  chunk.Reset();
  EXPECT_THAT(chunk.samples(), IsEmpty());
  EXPECT_EQ(chunk.bytes_in(), 0u);
  chunk.Load(source, 0, 1);
  chunk.Probe();
  CheckHashes(chunk);
}

// A source that says of its images what an earlier probe has found, and which hashes it verified.
class KnownSource : public MemorySource {
 public:
  explicit KnownSource(const ProbeOptions& probed) : MemorySource(kImages), probed_(probed) {}

  LoadResult Load(const Listing& listing, uint64_t row, Arena& arena) const override {
    LoadResult loaded = MemorySource::Load(listing, row, arena);
    LoadedSample& sample = std::get<LoadedSample>(loaded);
    sample.image = {.width = 1234, .height = 5, .format = ImageFormat::kPng};
    sample.probed = &probed_;
    sample.hashes = hashes_;
    return loaded;
  }

 private:
  const ProbeOptions probed_;
  const std::vector<uint64_t> hashes_ = {42};
};

TEST(SampleChunkTest, WhatTheSourceHasCheckedIsNotCheckedAgain) {
  struct Case {
    ProbeOptions probed;
    bool known;
  };
  const ProbeOptions same;
  const std::vector<Case> cases = {{same, true},
                                   {{.max_pixels = same.max_pixels - 1}, true},
                                   {{.max_pixels = same.max_pixels + 1}, false},
                                   {{.level = ProbeLevel::kHeader}, false},
                                   {{.allow_truncated = true}, false}};
  for (const Case& each : cases) {
    KnownSource source(each.probed);
    const Plan plan = MakePlan(source);
    SampleChunk chunk(plan);
    chunk.Load(source, 0, 1);
    chunk.Probe();
    ASSERT_THAT(chunk.samples(), SizeIs(1));
    const PreparedSample& sample = chunk.samples()[0];
    EXPECT_EQ(sample.image.width == 1234, each.known) << &each - cases.data();
    EXPECT_EQ(sample.image.format, each.known ? ImageFormat::kPng : ImageFormat::kJpeg);
    EXPECT_THAT(chunk.hashes(sample), ElementsAre(42));
  }
  // Changed pixels have other hashes.
  KnownSource source(same);
  const Plan plan = MakePlan(source, LargeImages());
  SampleChunk chunk(plan);
  chunk.Load(source, 0, 1);
  chunk.Probe();
  chunk.Hash();
  CheckHashes(chunk);
}

TEST(SampleChunkTest, ABadInputBecomesASkip) {
  MemorySource source(kImages);
  const Plan plan = MakePlan(source);
  source.Replace(plan.row(1), "not an image");
  SampleChunk chunk(plan);
  chunk.Load(source, 0, 3);
  chunk.Probe();
  EXPECT_THAT(RowsOf(plan, chunk), ElementsAre(plan.row(0), plan.row(2)));
  CheckHashes(chunk);
  ASSERT_THAT(chunk.skips(), SizeIs(1));
  EXPECT_EQ(chunk.skips()[0].row, plan.row(1));
  EXPECT_EQ(chunk.skips()[0].reason, SkipReason::kNotAnImage);
}

TEST(SampleChunkTest, AnErrorOfReadingLeavesItEmpty) {
  MemorySource source(kImages);
  const Plan plan = MakePlan(source);
  source.FailToRead(plan.row(2), absl::UnavailableError("gone"));
  SampleChunk chunk(plan);
  chunk.Load(source, 0, 5);
  EXPECT_EQ(chunk.status(), absl::UnavailableError("gone"));
  EXPECT_THAT(chunk.samples(), IsEmpty());
  EXPECT_THAT(chunk.skips(), IsEmpty());
}

class TransformedChunkTest : public ::testing::Test {
 protected:
  uint64_t TransformNext(SampleChunk& chunk) {
    const PreparedSample& sample = *chunk.next();
    return chunk.TransformNext(transform_, transform_.Decide(sample.fields[0].bytes, sample.image),
                               scratch_);
  }

  const PlanOptions options_ = LargeImages();
  const ImageTransform transform_ = *ImageTransform::Create(options_.pixels);
  TransformScratch scratch_;
};

TEST_F(TransformedChunkTest, ImagesBecomeWhatThePlanSays) {
  MemorySource source(kImages);
  const Plan plan = MakePlan(source, options_);
  SampleChunk chunk(plan);
  chunk.Load(source, 0, 4);
  chunk.Probe();
  while (chunk.next() != nullptr) EXPECT_GT(TransformNext(chunk), 0u);
  chunk.Hash();
  ASSERT_THAT(chunk.samples(), SizeIs(4));
  for (const PreparedSample& sample : chunk.samples()) EXPECT_EQ(sample.image.width, 48u);
  CheckHashes(chunk);
  EXPECT_EQ(chunk.pixel_stats().images, 4u);
  EXPECT_EQ(chunk.pixel_stats().sums.pixels, 4u * 48 * 48);
}

TEST_F(TransformedChunkTest, AnImageThatCannotBeDecodedBecomesASkip) {
  MemorySource source(kImages);
  PlanOptions options = options_;
  options.verify = ProbeLevel::kHeader;
  const Plan plan = MakePlan(source, options);
  const std::string_view whole = source.bytes(plan.row(1));
  source.Replace(plan.row(1), std::string(whole.substr(0, whole.size() - 6)));
  SampleChunk chunk(plan);
  chunk.Load(source, 0, 3);
  chunk.Probe();
  while (chunk.next() != nullptr) TransformNext(chunk);
  chunk.Hash();
  EXPECT_THAT(RowsOf(plan, chunk), ElementsAre(plan.row(0), plan.row(2)));
  CheckHashes(chunk);
  ASSERT_THAT(chunk.skips(), SizeIs(1));
  EXPECT_EQ(chunk.skips()[0].reason, SkipReason::kDecodeFailed);
}

TEST_F(TransformedChunkTest, EachSampleIsFlushedOnce) {
  MemorySource source(kImages);
  const Plan plan = MakePlan(source, options_);
  source.Replace(plan.row(1), "not an image");
  SampleChunk chunk(plan);
  chunk.Load(source, 0, 6);
  chunk.Probe();
  std::vector<uint64_t> rows;
  uint64_t skips = 0, images = 0, pixels = 0;
  const auto append = [&](const SampleChunk& prefix) {
    for (const uint64_t row : RowsOf(plan, prefix)) rows.push_back(row);
    CheckHashes(prefix);
    skips += prefix.skips().size();
    images += prefix.pixel_stats().images;
    pixels += prefix.pixel_stats().sums.pixels;
  };
  TransformNext(chunk);
  TransformNext(chunk);
  chunk.FlushPrefix(append);
  EXPECT_THAT(rows, ElementsAre(plan.row(0), plan.row(2)));
  TransformNext(chunk);
  chunk.FlushPrefix(append);
  while (chunk.next() != nullptr) TransformNext(chunk);
  chunk.Hash();
  append(chunk);
  EXPECT_THAT(rows, ElementsAre(plan.row(0), plan.row(2), plan.row(3), plan.row(4), plan.row(5)));
  EXPECT_EQ(skips, 1u);
  EXPECT_EQ(images, 5u);
  EXPECT_EQ(pixels, 5u * 48 * 48);
}

}  // namespace
}  // namespace shardpack

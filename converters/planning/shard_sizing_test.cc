#include "converters/planning/shard_sizing.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::ElementsAre;

std::vector<uint64_t> Sums(const std::vector<uint64_t>& sizes, uint64_t from = 0) {
  std::vector<uint64_t> sums = {from};
  for (const uint64_t size : sizes) sums.push_back(sums.back() + size);
  return sums;
}

// The fewest shards in this order, computed greedily.
uint64_t Fewest(const std::vector<uint64_t>& sizes, uint64_t capacity) {
  uint64_t shards = 0, room = 0;
  for (const uint64_t size : sizes) {
    if (shards == 0 || size > room) {
      ++shards;
      room = std::max(capacity, size);
    }
    room -= size;
  }
  return shards;
}

TEST(CutByBytesTest, EqualSamplesGiveEqualShards) {
  EXPECT_THAT(CutByBytes(Sums(std::vector<uint64_t>(10, 5)), 20), ElementsAre(3, 6, 10));
  EXPECT_THAT(CutByBytes(Sums(std::vector<uint64_t>(101, 1)), 100), ElementsAre(50, 101));
  EXPECT_THAT(CutByBytes(Sums({7}), 100), ElementsAre(1));
}

TEST(CutByBytesTest, OnlyASingleSampleExceedsTheCapacity) {
  EXPECT_THAT(CutByBytes(Sums({1, 50, 1, 1}), 10), ElementsAre(1, 2, 4));
  EXPECT_THAT(CutByBytes(Sums({50, 60}), 10), ElementsAre(1, 2));
}

TEST(CutByBytesTest, NoCapacityOverflows) {
  EXPECT_THAT(CutByBytes(Sums({1, 2}, 100), UINT64_MAX), ElementsAre(2));
}

TEST(CutByBytesTest, PropertiesOnRandomSizes) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<uint64_t> sizes(1 + random() % 60);
    uint64_t largest = 0;
    for (uint64_t& size : sizes) {
      size = 1 + random() % (random() % 8 == 0 ? 150 : 40);
      largest = std::max(largest, size);
    }
    const uint64_t capacity = 20 + random() % 200;
    const std::vector<uint64_t> sums = Sums(sizes, random() % 100);
    const std::vector<uint64_t> ends = CutByBytes(sums, capacity);
    ASSERT_EQ(ends.size(), Fewest(sizes, capacity));
    ASSERT_EQ(ends.back(), sizes.size());
    uint64_t begin = 0, least = UINT64_MAX, most = 0;
    for (const uint64_t end : ends) {
      ASSERT_GT(end, begin);
      const uint64_t bytes = sums[end] - sums[begin];
      ASSERT_TRUE(bytes <= capacity || end == begin + 1);
      least = std::min(least, bytes);
      most = std::max(most, bytes);
      begin = end;
    }
    // If the capacity is not the limit and samples are small, shards are equal up to about one
    // sample.
    const uint64_t total = sums.back() - sums[0];
    if (largest * 4 < capacity && total / ends.size() + 2 * largest < capacity) {
      EXPECT_LE(most - least, 2 * largest);
    }
  }
}

TEST(AutomaticCapacityTest, EightShardsForASmallDataset) {
  const std::vector<uint64_t> sums = Sums(std::vector<uint64_t>(60'000, 2'560));
  EXPECT_EQ(CutByBytes(sums, AutomaticCapacity(sums, 10'240)).size(), 8u);
}

TEST(AutomaticCapacityTest, ATinyDatasetIsOneShardAndALargeOneObeysTheCap) {
  const std::vector<uint64_t> tiny = Sums(std::vector<uint64_t>(100, 1'000));
  EXPECT_EQ(CutByBytes(tiny, AutomaticCapacity(tiny, 10'240)).size(), 1u);
  const std::vector<uint64_t> large = Sums(std::vector<uint64_t>(100'000, 100'000));
  EXPECT_EQ(AutomaticCapacity(large, 10'240), 256'000'000u - 10'240u);
  EXPECT_EQ(CutByBytes(large, AutomaticCapacity(large, 10'240)).size(), 40u);
}

TEST(CutEvenlyTest, DiffersByOne) {
  EXPECT_THAT(CutEvenly(10, 3), ElementsAre(4, 7, 10));
  EXPECT_THAT(CutEvenly(3, 3), ElementsAre(1, 2, 3));
  EXPECT_THAT(CutEvenly(5, 1), ElementsAre(5));
}

TEST(DivideShardsTest, EachGroupGetsOneAndNoMoreThanItHas) {
  EXPECT_THAT(DivideShards(10, std::vector<uint64_t>{900, 100}), ElementsAre(9, 1));
  EXPECT_THAT(DivideShards(4, std::vector<uint64_t>{9000, 1, 1}), ElementsAre(2, 1, 1));
  EXPECT_THAT(DivideShards(3, std::vector<uint64_t>{9000, 1, 1}), ElementsAre(1, 1, 1));
  std::mt19937_64 random(2);
  for (int round = 0; round < 2000; ++round) {
    std::vector<uint64_t> weights(1 + random() % 6);
    for (uint64_t& weight : weights) weight = 1 + random() % (random() % 3 == 0 ? 1000 : 10);
    const uint64_t samples = std::accumulate(weights.begin(), weights.end(), uint64_t{0});
    const uint64_t shards = weights.size() + random() % (samples - weights.size() + 1);
    const std::vector<uint64_t> parts = DivideShards(shards, weights);
    ASSERT_EQ(std::accumulate(parts.begin(), parts.end(), uint64_t{0}), shards);
    for (size_t i = 0; i < parts.size(); ++i) {
      ASSERT_GE(parts[i], 1u);
      ASSERT_LE(parts[i], weights[i]);
    }
  }
}

}  // namespace
}  // namespace shardpack

#include "readers/order/block_shuffle.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::ElementsAre;

std::vector<uint64_t> Part(const BlockShuffle& shuffle, uint64_t first, uint64_t length) {
  std::vector<uint64_t> values(length);
  shuffle.Fill(first, values);
  return values;
}

void ExpectEachOnce(std::vector<uint64_t> values, uint64_t size) {
  ASSERT_EQ(values.size(), size);
  std::sort(values.begin(), values.end());
  for (uint64_t i = 0; i < size; ++i) ASSERT_EQ(values[i], i) << "of " << size;
}

TEST(BlockShuffleTest, HoldsEachNumberOnce) {
  for (uint64_t size = 1; size <= 600; ++size) {
    for (const uint32_t block : {1u, 2u, 7u, 64u, 1000u}) {
      for (const uint32_t window : {1u, 2u, 5u, 4'000'000'000u}) {
        SCOPED_TRACE(::testing::Message() << size << " block " << block << " window " << window);
        const BlockShuffle shuffle(size, block, window, size);
        ASSERT_NO_FATAL_FAILURE(ExpectEachOnce(Part(shuffle, 0, size), size));
      }
    }
  }
}

TEST(BlockShuffleTest, AnyPartIsThatOfTheWhole) {
  std::mt19937_64 random(1);
  for (const uint32_t window : {1u, 3u, 50u}) {
    const BlockShuffle shuffle(5003, 32, window, 9);
    const std::vector<uint64_t> whole = Part(shuffle, 0, 5003);
    for (int i = 0; i < 500; ++i) {
      const uint64_t first = random() % 5003, length = random() % (5004 - first);
      const auto begin = whole.begin() + static_cast<ptrdiff_t>(first);
      ASSERT_EQ(Part(shuffle, first, length),
                std::vector<uint64_t>(begin, begin + static_cast<ptrdiff_t>(length)));
    }
  }
}

// Wherever the short last block is, no window holds numbers of more blocks than it should.
TEST(BlockShuffleTest, AWindowHoldsItsBlocksAlone) {
  std::set<size_t> short_windows;
  for (uint64_t key = 0; key < 60; ++key) {
    const uint64_t size = 1003, block = 10, window = 4;
    const std::vector<uint64_t> values = Part(BlockShuffle(size, block, window, key), 0, size);
    std::set<uint64_t> seen;
    for (size_t begin = 0, number = 0; begin < size; ++number) {
      std::set<uint64_t> blocks;
      size_t end = begin;
      while (end < size && (blocks.contains(values[end] / block) || blocks.size() < window)) {
        blocks.insert(values[end++] / block);
      }
      // Complete blocks: all of their numbers are here.
      size_t expected = 0;
      for (const uint64_t b : blocks) {
        ASSERT_TRUE(seen.insert(b).second) << "block " << b << " is in two windows";
        expected += std::min(block, size - b * block);
      }
      ASSERT_EQ(end - begin, expected);
      if (expected % block != 0) short_windows.insert(number);
      begin = end;
    }
    EXPECT_EQ(seen.size(), 101u);
  }
  EXPECT_GT(short_windows.size(), 15u);  // of 26: the last block moves around
}

TEST(BlockShuffleTest, BlocksComeFromAnywhereAndAreMixed) {
  const std::vector<uint64_t> values = Part(BlockShuffle(1'000'000, 100, 50, 3), 0, 5000);
  EXPECT_LT(*std::min_element(values.begin(), values.end()), 100'000u);
  EXPECT_GT(*std::max_element(values.begin(), values.end()), 900'000u);
  int next_in_block = 0;
  for (size_t i = 1; i < values.size(); ++i) next_in_block += values[i] == values[i - 1] + 1;
  EXPECT_LT(next_in_block, 10);  // about 1 by chance
}

TEST(BlockShuffleTest, AWindowOfATerabyteScaleSetIsExact) {
  const uint64_t size = (uint64_t{1} << 40) - 12'345, block = 256, window = 64;
  const BlockShuffle shuffle(size, block, window, 5);
  for (const uint64_t number : {uint64_t{0}, uint64_t{1'000'003}, size / (block * window) - 2}) {
    // After the short block, wherever it is, windows begin earlier, so these indexes span two
    // windows.
    const std::vector<uint64_t> values = Part(shuffle, number * block * window, block * window);
    std::set<uint64_t> blocks;
    for (const uint64_t value : values) {
      ASSERT_LT(value, size);
      blocks.insert(value / block);
    }
    EXPECT_LE(blocks.size(), number == 0 ? window : 2 * window);
    EXPECT_EQ(std::set<uint64_t>(values.begin(), values.end()).size(), values.size());
  }
  EXPECT_LT(Part(shuffle, size - 1, 1).front(), size);
}

// These never change: a run of an older version must continue in the same order. Computed by an
// independent implementation that lays the blocks out as lists.
TEST(BlockShuffleTest, GoldenValues) {
  EXPECT_THAT(Part(BlockShuffle(23, 4, 2, 7), 0, 23),
              ElementsAre(21, 16, 19, 20, 18, 22, 17, 11, 12, 10, 8, 13, 15, 14, 9, 1, 5, 4, 2, 3,
                          6, 0, 7));
  EXPECT_THAT(Part(BlockShuffle(1'281'167, 256, 64, 42), 1'000'000, 4),
              ElementsAre(864551, 919233, 344061, 883176));
}

}  // namespace
}  // namespace shardpack

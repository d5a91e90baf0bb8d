#include "readers/order/permutation.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::ElementsAre;

std::vector<uint64_t> All(const Permutation& permutation) {
  std::vector<uint64_t> values(permutation.size());
  std::iota(values.begin(), values.end(), 0);
  permutation.MapAll(values);
  return values;
}

TEST(PermutationTest, IsOneToOneForEverySize) {
  for (uint64_t size = 1; size <= 2000; ++size) {
    for (uint64_t key : {uint64_t{0}, ~uint64_t{0}, size * 0x9E3779B97F4A7C15}) {
      const Permutation permutation(size, key);
      const std::vector<uint64_t> values = All(permutation);
      std::vector<bool> seen(size);
      for (uint64_t index = 0; index < size; ++index) {
        const uint64_t value = values[index];
        ASSERT_LT(value, size);
        ASSERT_FALSE(seen[value]) << value << " twice, of " << size;
        seen[value] = true;
        ASSERT_EQ(permutation.Map(index), value) << size << " at " << index;
        ASSERT_EQ(permutation.Inverse(value), index) << size;
      }
    }
  }
}

TEST(PermutationTest, IsOneToOneForLargeSizes) {
  std::mt19937_64 random(1);
  std::vector<uint64_t> sizes;
  for (int bits = 11; bits <= 61; ++bits) {
    const uint64_t power = uint64_t{1} << bits;
    sizes.insert(sizes.end(), {power - 1, power, power + 1, power + random() % power});
  }
  sizes.push_back(Permutation::kMaxSize);
  for (const uint64_t size : sizes) {
    const Permutation permutation(size, random());
    std::vector<uint64_t> indexes(700), values;
    for (uint64_t& index : indexes) index = random() % size;
    indexes.front() = 0;
    indexes.back() = size - 1;
    values = indexes;
    permutation.MapAll(values);
    for (size_t i = 0; i < indexes.size(); ++i) {
      ASSERT_LT(values[i], size);
      ASSERT_EQ(permutation.Inverse(values[i]), indexes[i]) << size;
      ASSERT_EQ(permutation.Map(indexes[i]), values[i]) << size;
      ASSERT_EQ(permutation.Map(permutation.Inverse(indexes[i])), indexes[i]) << size;
    }
  }
}

TEST(PermutationTest, MapsNoneOrAFew) {
  const Permutation permutation(1000, 5);
  permutation.MapAll({});
  for (size_t length : {1, 2, 255, 256, 257, 511, 513}) {
    std::vector<uint64_t> indexes(length);
    for (size_t i = 0; i < length; ++i) indexes[i] = (i * 7) % 1000;
    permutation.MapAll(indexes);
    for (size_t i = 0; i < length; ++i) ASSERT_EQ(indexes[i], permutation.Map((i * 7) % 1000));
  }
}

// These never change: a run of an older version must continue in the same order. Computed from the
// definition by an independent implementation.
TEST(PermutationTest, GoldenValues) {
  EXPECT_EQ(MixKey(0, 0), 0xE220A8397B1DCDAFu);  // the first number of splitmix64, starting from 0
  EXPECT_EQ(MixKey(7, 3), 0x6E73E372E2338ACAu);
  EXPECT_THAT(All(Permutation(10, 7)), ElementsAre(4, 8, 1, 3, 5, 2, 7, 9, 6, 0));
  EXPECT_THAT(All(Permutation(17, 7)),
              ElementsAre(10, 4, 11, 5, 0, 1, 13, 15, 9, 6, 7, 2, 12, 14, 8, 16, 3));
  struct Golden {
    uint64_t size, key, first, second, last;
  };
  for (const Golden& golden :
       {Golden{50'000, 0, 20603, 7466, 46328}, Golden{1'281'167, 42, 1204832, 757969, 145974},
        Golden{(uint64_t{1} << 40) + 1, 1, 179496824298, 678726584481, 186350817754}}) {
    const Permutation permutation(golden.size, golden.key);
    EXPECT_EQ(permutation.Map(0), golden.first) << golden.size;
    EXPECT_EQ(permutation.Map(1), golden.second) << golden.size;
    EXPECT_EQ(permutation.Map(golden.size - 1), golden.last) << golden.size;
  }
}

// Chi-square over `cells` that should be equally full, as a normal deviate.
double Deviation(const std::vector<double>& cells) {
  const double mean = std::accumulate(cells.begin(), cells.end(), 0.0) / cells.size();
  double chi = 0;
  for (const double cell : cells) chi += (cell - mean) * (cell - mean) / mean;
  const double freedom = static_cast<double>(cells.size() - 1);
  return (chi - freedom) / std::sqrt(2 * freedom);
}

TEST(PermutationTest, EveryOrderOfAFewComesEquallyOften) {
  for (uint64_t size = 2, orders = 2; size <= 6; orders *= ++size) {
    std::map<std::vector<uint64_t>, double> counts;
    for (uint64_t key = 0; key < 50 * orders; ++key) ++counts[All(Permutation(size, key))];
    ASSERT_EQ(counts.size(), orders) << size;
    std::vector<double> cells;
    for (const auto& [order, count] : counts) cells.push_back(count);
    EXPECT_LT(std::abs(Deviation(cells)), 5) << size;
  }
}

// Over many keys, each value is equally likely at each index, and so is each distance between the
// values of adjacent indexes.
TEST(PermutationTest, PlacesAndNeighboursAreIndependent) {
  for (const uint64_t size : {7, 16, 17, 31, 32, 33, 64, 100, 127}) {
    std::vector<double> values(size * size), steps(size - 1);
    for (uint64_t key = 0; key < 100 * size; ++key) {
      const std::vector<uint64_t> all = All(Permutation(size, key));
      for (uint64_t i = 0; i < size; ++i) {
        ++values[i * size + all[i]];
        ++steps[(all[(i + 1) % size] + size - all[i]) % size - 1];
      }
    }
    EXPECT_LT(std::abs(Deviation(values)), 5) << size;
    EXPECT_LT(std::abs(Deviation(steps)), 5) << size;
  }
}

TEST(PermutationTest, KeysThatDifferInABitAreUnrelated) {
  const std::vector<uint64_t> first = All(Permutation(10'000, 12345));
  for (int bit = 0; bit < 64; ++bit) {
    const std::vector<uint64_t> other = All(Permutation(10'000, 12345 ^ uint64_t{1} << bit));
    int same = 0, same_step = 0;
    for (size_t i = 0; i + 1 < first.size(); ++i) {
      same += first[i] == other[i];
      same_step += first[i + 1] - first[i] == other[i + 1] - other[i];
    }
    // Poisson with the means 1 and 2/3.
    EXPECT_LT(same, 12) << bit;
    EXPECT_LT(same_step, 12) << bit;
  }
}

}  // namespace
}  // namespace shardpack

#include "readers/order/mixture.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::ElementsAre;
using Counts = std::vector<uint64_t>;

Counts Apportioned(uint64_t total, const Counts& weights) { return Apportion(total, weights); }

TEST(ApportionTest, GivesEachPartItsShare) {
  EXPECT_THAT(Apportioned(1000, {2, 1}), ElementsAre(667, 333));
  EXPECT_THAT(Apportioned(10, {1, 1, 1}), ElementsAre(4, 3, 3));
  EXPECT_THAT(Apportioned(10, {1, 1, 2}), ElementsAre(3, 2, 5));
  EXPECT_THAT(Apportioned(10, {5, 1}), ElementsAre(8, 2));
  EXPECT_THAT(Apportioned(10, {3, 3, 1, 1}), ElementsAre(4, 4, 1, 1));
  EXPECT_THAT(Apportioned(7, {0, 5}), ElementsAre(0, 7));
  EXPECT_THAT(Apportioned(0, {3, 5}), ElementsAre(0, 0));
  EXPECT_THAT(Apportioned(uint64_t{1} << 60, {uint64_t{1} << 60, uint64_t{3} << 60}),
              ElementsAre(uint64_t{1} << 58, uint64_t{3} << 58));
}

TEST(ApportionTest, IsWithinOneOfTheQuota) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 500; ++round) {
    Counts weights(1 + random() % 20);
    for (uint64_t& weight : weights) weight = 1 + random() % 1000;
    const uint64_t total = random() % 100'000,
                   sum = std::accumulate(weights.begin(), weights.end(), 0);
    const Counts counts = Apportion(total, weights);
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), uint64_t{0}), total);
    for (size_t i = 0; i < weights.size(); ++i) {
      EXPECT_GE(counts[i], total * weights[i] / sum);
      EXPECT_LE(counts[i], total * weights[i] / sum + 1);
    }
  }
}

// All slots, by the definition: (2j + 1) / count in ascending order.
std::vector<uint32_t> Reference(const Counts& counts) {
  struct Seat {
    uint64_t odd, count;
    uint32_t part;
  };
  std::vector<Seat> seats;
  for (uint32_t part = 0; part < counts.size(); ++part) {
    for (uint64_t j = 0; j < counts[part]; ++j) seats.push_back({2 * j + 1, counts[part], part});
  }
  std::stable_sort(seats.begin(), seats.end(),
                   [](const Seat& a, const Seat& b) { return a.odd * b.count < b.odd * a.count; });
  std::vector<uint32_t> parts;
  for (const Seat& seat : seats) parts.push_back(seat.part);
  return parts;
}

TEST(MixtureWalkTest, FollowsTheDefinitionFromAnySlot) {
  std::mt19937_64 random(2);
  std::vector<Counts> cases = {{1}, {5}, {1, 1, 1}, {1, 99}, {99, 1}, {50, 50}, {1, 1, 1, 1, 96}};
  cases.emplace_back(60, 1);
  for (int i = 0; i < 30; ++i) {
    Counts counts(1 + random() % 12);
    for (uint64_t& count : counts) count = 1 + random() % (i % 2 == 0 ? 9 : 90);
    cases.push_back(std::move(counts));
  }
  for (const Counts& counts : cases) {
    const std::vector<uint32_t> expected = Reference(counts);
    for (size_t first = 0; first < expected.size(); ++first) {
      std::vector<uint64_t> taken(counts.size());
      for (size_t i = 0; i < first; ++i) ++taken[expected[i]];
      MixtureWalk walk(counts, first);
      for (size_t i = first; i < expected.size(); ++i) {
        const MixtureWalk::Slot slot = walk.Next();
        ASSERT_EQ(slot.part, expected[i]) << "slot " << i << " from " << first;
        ASSERT_EQ(slot.index, taken[slot.part]++) << "slot " << i << " from " << first;
      }
    }
  }
}

// No stretch of slots lacks a part or consists of only one.
TEST(MixtureWalkTest, SpreadsPartsEvenly) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 50; ++round) {
    Counts counts(2 + random() % 6);
    for (uint64_t& count : counts) count = 1 + random() % 5000;
    const uint64_t total = std::accumulate(counts.begin(), counts.end(), uint64_t{0});
    std::vector<uint64_t> taken(counts.size());
    MixtureWalk walk(counts, 0);
    for (uint64_t slot = 1; slot <= total; ++slot) {
      ++taken[walk.Next().part];
      for (size_t i = 0; i < counts.size(); ++i) {
        const double share = static_cast<double>(slot) * counts[i] / total;
        ASSERT_LT(std::abs(static_cast<double>(taken[i]) - share), 2) << i << " at " << slot;
      }
    }
  }
}

TEST(MixtureWalkTest, LargeCountsDoNotOverflow) {
  const Counts counts = {uint64_t{1} << 47, (uint64_t{1} << 47) - 1, 1};
  MixtureWalk walk(counts, (uint64_t{1} << 48) - 6);
  std::vector<std::pair<uint32_t, uint64_t>> slots;
  for (int i = 0; i < 6; ++i) {
    const MixtureWalk::Slot slot = walk.Next();
    slots.emplace_back(slot.part, slot.index);
  }
  using ::testing::Pair;
  const uint64_t end = uint64_t{1} << 47;
  EXPECT_THAT(slots, ElementsAre(Pair(1, end - 4), Pair(0, end - 3), Pair(1, end - 3),
                                 Pair(0, end - 2), Pair(1, end - 2), Pair(0, end - 1)));
}

}  // namespace
}  // namespace shardpack

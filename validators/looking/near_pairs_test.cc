#include "validators/looking/near_pairs.h"

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace shardpack {
namespace {

std::map<std::pair<uint32_t, uint32_t>, int> AllPairs(const std::vector<uint64_t>& hashes,
                                                      int distance) {
  std::map<std::pair<uint32_t, uint32_t>, int> pairs;
  for (uint32_t i = 0; i < hashes.size(); ++i) {
    for (uint32_t j = i + 1; j < hashes.size(); ++j) {
      const int found = std::popcount(hashes[i] ^ hashes[j]);
      if (found <= distance) pairs[{i, j}] = found;
    }
  }
  return pairs;
}

TEST(NearPairs, AreExactlyThoseOfBruteForce) {
  std::mt19937_64 random(3);
  // Random hashes, and around each of some of them others at every small distance.
  std::vector<uint64_t> hashes;
  for (int i = 0; i < 300; ++i) hashes.push_back(random());
  for (int i = 0; i < 1500; ++i) {
    uint64_t hash = hashes[random() % 100];
    for (uint64_t flips = random() % 20; flips > 0; --flips) hash ^= uint64_t{1} << random() % 64;
    hashes.push_back(hash);
  }
  hashes.push_back(0);
  hashes.push_back(~uint64_t{0});
  const std::atomic<int> stop{0};
  for (int distance = 0; distance <= kMaxNearDistance; ++distance) {
    std::map<std::pair<uint32_t, uint32_t>, int> found;
    EXPECT_TRUE(FindNearPairs(hashes, distance, stop, [&](const NearPair& pair) {
      const bool is_new = found.emplace(std::pair(pair.first, pair.second), pair.distance).second;
      EXPECT_TRUE(is_new) << "found twice: " << pair.first << ", " << pair.second;
    }));
    EXPECT_EQ(found, AllPairs(hashes, distance)) << "distance " << distance;
  }
}

TEST(NearPairs, OfFewHashes) {
  const std::atomic<int> stop{0};
  int count = 0;
  const auto found = [&](const NearPair&) { ++count; };
  EXPECT_TRUE(FindNearPairs({}, 6, stop, found));
  const uint64_t one[] = {5};
  EXPECT_TRUE(FindNearPairs(one, 6, stop, found));
  EXPECT_EQ(count, 0);
  const uint64_t two[] = {5, 4};
  EXPECT_TRUE(FindNearPairs(two, 0, stop, found));
  EXPECT_EQ(count, 0);
  EXPECT_TRUE(FindNearPairs(two, 1, stop, found));
  EXPECT_EQ(count, 1);
}

TEST(NearPairs, AStopEndsTheSearch) {
  const std::atomic<int> stop{15};
  const uint64_t two[] = {5, 4};
  EXPECT_FALSE(FindNearPairs(two, 6, stop, [](const NearPair&) {}));
}

}  // namespace
}  // namespace shardpack

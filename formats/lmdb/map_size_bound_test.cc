#include "formats/lmdb/map_size_bound.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "formats/lmdb/lmdb_format.h"
#include "formats/testing/scratch_folder.h"
#include "formats/testing/test_shard.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

constexpr uint64_t kPage = 4096;
// Node sizes and the room in a leaf, in units of two bytes.
constexpr size_t kRoom = (kPage - 16) / 2, kLargest = (MaxNodeBytes(kPage) + 2) / 2;

TEST(MapSizeBound, WhatStaysInALeaf) {
  EXPECT_EQ(MaxNodeBytes(4096), 2038u);
  EXPECT_FALSE(IsOverflow(8, 2022, 4096));
  EXPECT_TRUE(IsOverflow(8, 2023, 4096));
  EXPECT_EQ(OverflowPages(4080, 4096), 1u);
  EXPECT_EQ(OverflowPages(4081, 4096), 2u);
}

// A proof. Filled in key order, a leaf ends where the next node does not fit. Let a step be a leaf
// with a given first node, followed by a leaf with another first node; its cost is the smallest
// possible sum of its nodes' bounds, minus the page that it takes. Any sequence of leaves is a walk
// along such steps, so the bounds suffice exactly if no cycle of steps has a negative cost.
TEST(MapSizeBound, NoSequenceOfNodesNeedsMoreThanTheirBounds) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::vector<double> bound(kLargest + 1);
  for (size_t n = 1; n <= kLargest; ++n) bound[n] = static_cast<double>(LeafBound(2 * n, kPage));
  std::vector<double> least(kRoom + 1,
                            kNever);  // smallest sum for nodes with exactly that total size
  least[0] = 0;
  for (size_t size = 1; size <= kRoom; ++size) {
    for (size_t n = 1; n <= std::min(size, kLargest); ++n) {
      least[size] = std::min(least[size], least[size - n] + bound[n]);
    }
  }
  // cost[first][next]
  std::vector<std::vector<double>> cost(kLargest + 1, std::vector<double>(kLargest + 1, kNever));
  for (size_t first = 1; first <= kLargest; ++first) {
    double cheapest = kNever;
    size_t size = kRoom;
    for (size_t next = 1; next <= kLargest; ++next) {
      // All sizes with which `next` no longer fits.
      for (; size + next > kRoom && size >= first; --size) {
        cheapest = std::min(cheapest, bound[first] + least[size - first]);
      }
      cost[first][next] = cheapest - kPage;
    }
  }
  std::vector<double> distance(kLargest + 1, 0);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> shorter = distance;
    for (size_t first = 1; first <= kLargest; ++first) {
      for (size_t next = 1; next <= kLargest; ++next) {
        shorter[next] = std::min(shorter[next], distance[first] + cost[first][next]);
      }
    }
    if (shorter == distance) {
      // The most that the ends of a walk may lack; the overhead includes it.
      EXPECT_GT(*std::min_element(distance.begin(), distance.end()), -double{kPage});
      return;
    }
    distance = std::move(shorter);
  }
  FAIL() << "the bounds of some nodes are less than the pages that they need";
}

// For realistic small images the bound is close.
TEST(MapSizeBound, IsTightForImagesOfOneKilobyte) {
  const testing::ScratchFolder scratch;
  testing::Random random(3);
  std::vector<testing::OwnedSample> samples = testing::GenerateSamples({.count = 4000});
  uint64_t bounds = kLmdbFormat.traits.shard_overhead_bytes;
  std::vector<uint64_t> sizes;
  for (testing::OwnedSample& sample : samples) {
    sample.fields[0].second = testing::MakeRandomPayload(
        700 + random.Below(150) + random.Below(150) + random.Below(150), random);
    bounds += kLmdbFormat.record_bound({}, testing::ShapeOf(sample, sizes));
  }
  const auto bytes = testing::WriteShard(kLmdbFormat, {}, samples, scratch.File("shard"));
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_LE(bytes->size(), bounds);
  const double ratio = static_cast<double>(bounds) / static_cast<double>(bytes->size());
  RecordProperty("bound_per_byte", std::to_string(ratio));
  EXPECT_LT(ratio, 1.35);
}

}  // namespace
}  // namespace shardpack

#include "converters/planning/splits.h"

#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "converters/planning/seeded_shuffle.h"
#include "converters/testing/made_up.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::shardpack::testing::MakeListing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const SplitFractions kThree = {{"train", 0.8}, {"val", 0.1}, {"test", 0.1}};

std::vector<uint32_t> AllRows(const Listing& listing) {
  std::vector<uint32_t> rows(listing.rows());
  std::iota(rows.begin(), rows.end(), 0u);
  return rows;
}

absl::StatusOr<SplitPlan> Split(const Listing& listing, const SplitFractions& fractions, SplitBy by,
                                uint64_t seed = 7) {
  return PlanSplits(listing, AllRows(listing), fractions, by, seed);
}

// path -> split; every row must be in exactly one.
std::map<std::string, std::string> ByPath(const Listing& listing, SplitPlan plan) {
  std::map<std::string, std::string> splits;
  for (size_t split = 0; split < plan.names.size(); ++split) {
    for (const uint32_t row : plan.Rows(split)) {
      EXPECT_TRUE(splits.emplace(listing.Path(row), plan.names[split]).second);
    }
  }
  EXPECT_EQ(splits.size(), listing.rows());
  return splits;
}

std::vector<uint64_t> Sizes(SplitPlan plan) {
  std::vector<uint64_t> sizes;
  for (size_t split = 0; split < plan.names.size(); ++split)
    sizes.push_back(plan.Rows(split).size());
  return sizes;
}

TEST(SplitsTest, WithoutFractionsAllIsTrain) {
  const auto plan = Split(MakeListing(10), {}, SplitBy::kHash);
  EXPECT_THAT(plan->names, ElementsAre("train"));
  EXPECT_EQ(plan->rows.size(), 10u);
}

TEST(SplitsTest, HashIsStableWhenFilesComeAndGo) {
  const Listing few = MakeListing(1000), many = MakeListing(3000);
  const auto before = ByPath(few, *Split(few, kThree, SplitBy::kHash));
  const auto after = ByPath(many, *Split(many, kThree, SplitBy::kHash));
  for (const auto& [path, split] : before) EXPECT_EQ(after.at(path), split) << path;
  // Close to the requested sizes: within four standard deviations.
  const auto sizes = Sizes(*Split(many, kThree, SplitBy::kHash));
  EXPECT_NEAR(static_cast<double>(sizes[0]), 2400, 90);
  EXPECT_NEAR(static_cast<double>(sizes[1]), 300, 70);
  EXPECT_NE(ByPath(few, *Split(few, kThree, SplitBy::kHash, 8)), before);
}

TEST(SplitsTest, RandomIsExactAndSeeded) {
  const Listing listing = MakeListing(1003);
  const auto plan = *Split(listing, kThree, SplitBy::kRandom);
  EXPECT_THAT(Sizes(plan), ElementsAre(803, 100, 100));
  const auto paths = ByPath(listing, plan);
  EXPECT_EQ(paths, ByPath(listing, *Split(listing, kThree, SplitBy::kRandom)));
  EXPECT_NE(paths, ByPath(listing, *Split(listing, kThree, SplitBy::kRandom, 8)));
}

TEST(SplitsTest, StratifiedIsExactInEachClass) {
  const Listing listing = MakeListing(400);
  const auto plan = *Split(listing, kThree, SplitBy::kStratified);
  std::map<std::string, std::map<char, int>> counts;
  for (const auto& [path, split] : ByPath(listing, plan)) ++counts[split][path[5]];
  for (const char label : {'0', '1', '2', '3'}) {
    EXPECT_EQ(counts["train"][label], 80);
    EXPECT_EQ(counts["val"][label], 10);
    EXPECT_EQ(counts["test"][label], 10);
  }
  const auto without = Split(MakeListing({"1.jpg", "2.jpg"}), kThree, SplitBy::kStratified);
  EXPECT_TRUE(absl::IsInvalidArgument(without.status()));
}

TEST(SplitsTest, ByFolder) {
  const Listing listing = MakeListing({"val/a/1.jpg", "train/a/1.jpg", "train/b/1.jpg"});
  const auto plan = Split(listing, {}, SplitBy::kDir);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->names, ElementsAre("train", "val"));
  EXPECT_THAT(Sizes(*plan), ElementsAre(2, 1));
  for (const auto& paths : std::vector<std::vector<std::string>>{{"train/1.jpg", "stray.jpg"},
                                                                 {"my val/1.jpg"},
                                                                 {"Train/1.jpg", "train/1.jpg"},
                                                                 {".x/1.jpg"}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Split(MakeListing(paths), {}, SplitBy::kDir).status()))
        << paths[0];
  }
  EXPECT_TRUE(absl::IsInvalidArgument(Split(listing, kThree, SplitBy::kDir).status()));
}

TEST(SplitsTest, BadFractionsAreNamed) {
  const Listing listing = MakeListing(100);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const SplitFractions& bad : std::vector<SplitFractions>{{{"train", 0.9}, {"val", 0.2}},
                                                               {{"train", 0.9}},
                                                               {{"train", 1.0}, {"val", 0.0}},
                                                               {{"train", 1.5}, {"val", -0.5}},
                                                               {{"train", nan}, {"val", 0.5}},
                                                               {{"a", 0.5}, {"A", 0.5}},
                                                               {{"a/b", 1.0}},
                                                               {{"", 1.0}},
                                                               {{"-a", 1.0}},
                                                               {{"a.b", 1.0}}}) {
    const auto plan = Split(listing, bad, SplitBy::kHash);
    EXPECT_TRUE(absl::IsInvalidArgument(plan.status())) << bad[0].first;
    EXPECT_THAT(plan.status().ToString(), HasSubstr("--split"));
  }
  EXPECT_TRUE(Split(listing, {{"a", 0.1}, {"b", 0.2}, {"c", 0.7}}, SplitBy::kRandom).ok());
}

TEST(SplitsTest, AnEmptySplitIsAnErrorNamingIt) {
  const auto plan = Split(MakeListing(3), {{"train", 0.999}, {"val", 0.001}}, SplitBy::kRandom);
  EXPECT_TRUE(absl::IsInvalidArgument(plan.status()));
  EXPECT_THAT(plan.status().ToString(), HasSubstr("the split val would be empty"));
}

TEST(DivideExactlyTest, LargestRemainder) {
  EXPECT_THAT(DivideExactly(10, std::vector{0.3, 0.7}), ElementsAre(3, 7));
  EXPECT_THAT(DivideExactly(10, std::vector{1.0, 1.0, 1.0}), ElementsAre(4, 3, 3));
  EXPECT_THAT(DivideExactly(3, std::vector{0.9, 0.1}), ElementsAre(3, 0));
  EXPECT_THAT(DivideExactly(0, std::vector{0.9, 0.1}), ElementsAre(0, 0));
  for (uint64_t total = 1; total < 3000; total += 7) {
    const auto parts = DivideExactly(total, std::vector{0.123, 0.456, 0.421});
    EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), uint64_t{0}), total);
    EXPECT_NEAR(static_cast<double>(parts[0]), 0.123 * static_cast<double>(total), 1);
  }
}

// Computed by an implementation in another language. Changing it changes every dataset ever packed.
TEST(SeededRandomTest, TheSequenceIsFixed) {
  SeededRandom random(1, RandomStream::kShuffle);
  std::vector<int> items(8);
  std::iota(items.begin(), items.end(), 0);
  random.Shuffle(std::span(items));
  std::vector<uint64_t> draws;
  for (int i = 0; i < 4; ++i) draws.push_back(random.Below(1000));
  EXPECT_THAT(items, ElementsAre(5, 6, 7, 2, 4, 0, 1, 3));
  EXPECT_THAT(draws, ElementsAre(822, 579, 240, 970));
}

TEST(SeededRandomTest, DrawsAreUniformAndStreamsDiffer) {
  SeededRandom random(3, RandomStream::kSplit);
  std::vector<int> counts(7, 0);
  for (int i = 0; i < 70'000; ++i) ++counts[random.Below(7)];
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 400);
  std::set<uint64_t> first;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    for (uint64_t number = 0; number < 10; ++number) {
      first.insert(SeededRandom(seed, RandomStream::kShuffle, number).Below(uint64_t{1} << 60));
    }
  }
  EXPECT_EQ(first.size(), 100u);
}

}  // namespace
}  // namespace shardpack

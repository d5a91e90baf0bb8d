// The order of the plan survives a format that sorts by key.
#include "converters/planning/record_order.h"

#include <algorithm>
#include <string>
#include <vector>

#include "converters/testing/made_up.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::HasSubstr;

Plan ShuffledPlan(const Format& format) {
  PlanOptions options;
  options.shards = 3;
  options.key = KeyMode::kPath;
  options.seed = 7;
  return *Plan::Make(testing::MakeListing(40), options, format);
}

TEST(RecordOrderTest, GivesBackTheOrderWithoutTheSort) {
  const Plan plain = ShuffledPlan(testing::PlainFormat()),
             sorted = ShuffledPlan(testing::KeyOrderedFormat());
  EXPECT_FALSE(plain.is_reordered());
  ASSERT_TRUE(sorted.is_reordered());
  const auto places = ParseRecordOrder(RecordOrderBytes(sorted, {}), 40);
  ASSERT_TRUE(places.ok()) << places.status();
  for (uint64_t i = 0; i < 40; ++i) EXPECT_EQ(sorted.row(i), plain.row((*places)[i]));
}

TEST(RecordOrderTest, SkippedSamplesHaveNoPlace) {
  const Plan plain = ShuffledPlan(testing::PlainFormat()),
             sorted = ShuffledPlan(testing::KeyOrderedFormat());
  const std::vector<Skip> skips = {{3, SkipReason::kEmpty, ""}, {17, SkipReason::kEmpty, ""}};
  const auto places = ParseRecordOrder(RecordOrderBytes(sorted, skips), 38);
  ASSERT_TRUE(places.ok()) << places.status();
  const auto kept = [](const Plan& plan) {
    std::vector<uint32_t> rows;
    for (uint64_t i = 0; i < plan.positions(); ++i) {
      if (plan.row(i) != 3 && plan.row(i) != 17) rows.push_back(plan.row(i));
    }
    return rows;
  };
  const std::vector<uint32_t> of_plain = kept(plain), of_sorted = kept(sorted);
  for (size_t i = 0; i < 38; ++i) EXPECT_EQ(of_sorted[i], of_plain[(*places)[i]]);
}

TEST(RecordOrderTest, IsKeptInThePlanFile) {
  const Plan plan = ShuffledPlan(testing::KeyOrderedFormat());
  const auto read = Plan::FromBytes(plan.ToBytes(), &testing::FindMadeUpFormat);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(RecordOrderBytes(*read, {}), RecordOrderBytes(plan, {}));
}

TEST(RecordOrderTest, AnythingButAPermutationIsDamage) {
  using std::string_literals::operator""s;
  EXPECT_TRUE(ParseRecordOrder("\1\0\0\0\0\0\0\0"s, 2).ok());
  for (const auto& [bytes, records, why] :
       {std::tuple("\0\0\0\0\0\0\0\0"s, 2, "another record"),
        std::tuple("\2\0\0\0\0\0\0\0"s, 2, "beyond the end"), std::tuple("\0\0\0\0"s, 2, "4 bytes"),
        std::tuple("\0\0\0\0\0"s, 1, "5 bytes")}) {
    const auto parsed = ParseRecordOrder(bytes, static_cast<uint64_t>(records));
    EXPECT_TRUE(absl::IsDataLoss(parsed.status()));
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr(why));
  }
}

}  // namespace
}  // namespace shardpack

// Which classes are named as missing, and that damaged rows of a plan are not read.
#include "converters/planning/class_gaps.h"

#include <string>
#include <vector>

#include "converters/testing/made_up.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::shardpack::testing::FindMadeUpFormat;
using ::shardpack::testing::MakeListing;
using ::shardpack::testing::PlainFormat;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ClassGapsTest, SkipsMayComeInAnyOrder) {
  const Plan plan =
      *Plan::Make(MakeListing({"auk/1.jpg", "auk/2.jpg", "bee/1.jpg", "bee/2.jpg", "cat/1.jpg"}),
                  PlanOptions{}, PlainFormat());
  const auto skip = [](uint64_t row) { return Skip{row, SkipReason::kNotAnImage, ""}; };
  for (const std::vector<Skip>& skips :
       {std::vector{skip(0), skip(1), skip(2)}, std::vector{skip(2), skip(1), skip(0)},
        std::vector{skip(1), skip(2), skip(0)}}) {
    EXPECT_THAT(*ClassGaps(plan, skips), ElementsAre(HasSubstr("the class auk has no sample")));
  }
  EXPECT_THAT(*ClassGaps(plan, {}), IsEmpty());
  const std::vector<Skip> some = {skip(3), skip(0)};
  EXPECT_THAT(*ClassGaps(plan, some), IsEmpty());
}

TEST(ClassGapsTest, DamagedLabelsAreNotUsed) {
  PlanOptions options;
  options.shards = 5;
  std::string bytes = Plan::Make(MakeListing(100), options, PlainFormat())->ToBytes();
  const auto open = [&] { return *Plan::Open({nullptr, bytes, ""}, &FindMadeUpFormat); };
  ASSERT_TRUE(ClassGaps(open(), {}).ok());
  const size_t labels =
      static_cast<size_t>(open().slices()->All(PlanColumn::kLabel).data() - bytes.data());
  bytes[labels + 4 * 45 + 3] = 0x11;  // 285 million
  EXPECT_TRUE(absl::IsDataLoss(ClassGaps(open(), {}).status()));
}

}  // namespace
}  // namespace shardpack

#include "readers/order/rank.h"

#include <cstdint>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::HasSubstr;

TEST(RankTest, SharesOfAllRanksJoinToTheBatch) {
  for (uint32_t world_size : {1u, 2u, 3u, 4u, 6u, 8u, 12u, 24u}) {
    uint32_t next = 0;
    for (uint32_t rank = 0; rank < world_size; ++rank) {
      const Rank share = {rank, world_size};
      ASSERT_TRUE(CheckRank(share, 24).ok());
      EXPECT_EQ(share.slots(24), 24 / world_size);
      EXPECT_EQ(share.first_slot(24), next);
      next += share.slots(24);
    }
    EXPECT_EQ(next, 24u);
  }
}

TEST(RankTest, TheLargestBatchDoesNotOverflow) {
  const uint32_t batch = ~uint32_t{0};  // 3 * 5 * 17 * 257 * 65537
  const Rank last = {65536, 65537};
  ASSERT_TRUE(CheckRank(last, batch).ok());
  EXPECT_EQ(last.first_slot(batch), batch - 65535);
  EXPECT_FALSE(CheckRank({0, ~uint32_t{0}}, batch - 1).ok());
}

TEST(RankTest, SaysWhatDoesNotDivide) {
  const absl::Status uneven = CheckRank({1, 8}, 100);
  EXPECT_EQ(uneven.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(uneven.message()), HasSubstr("100 does not divide among 8 ranks"));
  EXPECT_THAT(std::string(uneven.message()), HasSubstr("96 or 104 would"));
  EXPECT_THAT(std::string(CheckRank({1, 8}, 7).message()), HasSubstr("ranks; 8 would"));
}

TEST(RankTest, RefusesWhatIsNoRank) {
  for (const Rank rank : {Rank{0, 0}, Rank{1, 1}, Rank{4, 4}, Rank{9, 4}}) {
    EXPECT_EQ(CheckRank(rank, 36).code(), absl::StatusCode::kInvalidArgument)
        << rank.rank << " of " << rank.world_size;
  }
  EXPECT_FALSE(CheckRank({0, 1}, 0).ok());
}

}  // namespace
}  // namespace shardpack

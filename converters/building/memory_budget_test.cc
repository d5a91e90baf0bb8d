#include "converters/building/memory_budget.h"

#include <atomic>
#include <utility>

#include "gtest/gtest.h"

namespace shardpack {
namespace {

TEST(MemoryBudgetTest, ReservationsGiveBackWhatTheyHold) {
  std::atomic<int64_t> gauge{0};
  MemoryBudget budget(100, gauge);
  {
    MemoryBudget::Reservation first = budget.Reserve(60);
    EXPECT_EQ(gauge, 60);
    EXPECT_TRUE(budget.Fits(40));
    EXPECT_FALSE(budget.Fits(41));
    MemoryBudget::Reservation second = budget.Reserve(70);  // allowed all the same
    EXPECT_EQ(gauge, 130);
    EXPECT_FALSE(budget.Fits(0));
    first.Resize(0);
    second.Resize(80);
    EXPECT_EQ(second.bytes(), 80u);
    EXPECT_EQ(gauge, 80);
  }
  EXPECT_EQ(gauge, 0);
  EXPECT_TRUE(budget.Fits(100));
}

TEST(MemoryBudgetTest, ReservationsMove) {
  std::atomic<int64_t> gauge{0};
  MemoryBudget budget(100, gauge);
  MemoryBudget::Reservation held;
  {
    MemoryBudget::Reservation first = budget.Reserve(10);
    held = std::move(first);
  }
  EXPECT_EQ(gauge, 10);
  held = budget.Reserve(20);
  EXPECT_EQ(gauge, 20);
  held = MemoryBudget::Reservation();
  EXPECT_EQ(gauge, 0);
}

}  // namespace
}  // namespace shardpack

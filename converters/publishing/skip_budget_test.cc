#include "converters/publishing/skip_budget.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace shardpack {
namespace {

TEST(SkipShareTest, WhatIsOfferedIsEnoughAndTheLeast) {
  for (const uint64_t seen : {1, 2, 3, 7, 50, 100, 101, 200, 365, 1000}) {
    for (uint64_t lost = 0; lost <= seen; ++lost) {
      const SkipShare share{lost, seen};
      const uint64_t percent = share.Percent();
      EXPECT_TRUE(share.Within(static_cast<double>(percent) / 100)) << lost << " of " << seen;
      EXPECT_FALSE(percent > 0 && share.Within(static_cast<double>(percent - 1) / 100))
          << lost << " of " << seen;
    }
  }
  EXPECT_EQ(7u, (SkipShare{7, 100}.Percent()));
}

TEST(SkipShareTest, NothingOfNothingIsWithin) { EXPECT_TRUE((SkipShare{0, 0}.Within(0))); }

}  // namespace
}  // namespace shardpack

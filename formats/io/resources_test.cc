#include "formats/io/resources.h"

#include <sched.h>

#include <vector>

#include "gtest/gtest.h"

namespace shardpack {
namespace {

TEST(ResourcesTest, CoresFollowTheAffinity) {
  cpu_set_t all, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(all), &all), 0);
  EXPECT_GE(AvailableCores(), 1);
  EXPECT_LE(AvailableCores(), CPU_COUNT(&all));
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &all)) {
      CPU_SET(cpu, &one);
      break;
    }
  }
  ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(AvailableCores(), 1);
  ::sched_setaffinity(0, sizeof(all), &all);
}

TEST(ResourcesTest, PeakMemoryGrowsWithUse) {
  const uint64_t before = PeakMemoryBytes();
  EXPECT_LE(before, AvailableMemoryBytes());
  const std::vector<char> touched(size_t{64} << 20, 1);
  EXPECT_GE(PeakMemoryBytes(), before + (uint64_t{32} << 20)) << static_cast<int>(touched[7]);
}

}  // namespace
}  // namespace shardpack

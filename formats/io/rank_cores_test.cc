#include "formats/io/rank_cores.h"

#include <cstdlib>

#include "formats/io/resources.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

TEST(RankCoresTest, RanksOfANodeShareItsCores) {
  EXPECT_EQ(ShareOfCores(128, 128, 8), 16);  // torchrun on a whole node
  EXPECT_EQ(ShareOfCores(128, 16, 8), 16);   // each rank is bound to its cores
  EXPECT_EQ(ShareOfCores(128, 4, 8), 4);
  EXPECT_EQ(ShareOfCores(4, 4, 8), 1);
  EXPECT_EQ(ShareOfCores(6, 6, 1), 6);
}

TEST(RankCoresTest, RanksAreThoseOfTheLauncher) {
  const auto set = [](const char* name, const char* value) { ::setenv(name, value, 1); };
  EXPECT_EQ(RanksOfNode(), 1);
  EXPECT_EQ(CoresOfRank(), AvailableCores());
  set("OMPI_COMM_WORLD_LOCAL_SIZE", "3");
  EXPECT_EQ(RanksOfNode(), 3);
  set("LOCAL_WORLD_SIZE", "4096");
  EXPECT_EQ(RanksOfNode(), 4096);
  EXPECT_EQ(CoresOfRank(), 1);
  for (const char* const wrong : {"", "0", "-2", "two"}) {
    set("LOCAL_WORLD_SIZE", wrong);
    EXPECT_EQ(RanksOfNode(), 3) << wrong;
  }
  ::unsetenv("LOCAL_WORLD_SIZE");
  ::unsetenv("OMPI_COMM_WORLD_LOCAL_SIZE");
}

}  // namespace
}  // namespace shardpack

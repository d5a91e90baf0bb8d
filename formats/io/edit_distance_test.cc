#include "formats/io/edit_distance.h"

#include <string>

#include "gtest/gtest.h"

namespace shardpack {
namespace {

TEST(EditDistanceTest, CountsEachKindOfEdit) {
  EXPECT_EQ(EditDistance("", ""), 0u);
  EXPECT_EQ(EditDistance("pack", "pack"), 0u);
  EXPECT_EQ(EditDistance("pack", "packs"), 1u);
  EXPECT_EQ(EditDistance("pack", "pck"), 1u);
  EXPECT_EQ(EditDistance("pack", "puck"), 1u);
  EXPECT_EQ(EditDistance("pack", "apck"), 1u) << "neighbours";
  EXPECT_EQ(EditDistance("pack", "cakp"), 3u) << "no neighbours";
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
}

TEST(EditDistanceTest, NoWordIsAsFarAsTheOtherIsLong) {
  EXPECT_EQ(EditDistance("", "verify"), 6u);
  EXPECT_EQ(EditDistance("verify", ""), 6u);
}

TEST(EditDistanceTest, CaseDoesNotMatter) {
  EXPECT_EQ(EditDistance("VALIDATE", "validate"), 0u);
  EXPECT_EQ(EditDistance("valdate", "Validate"), 1u);
  EXPECT_EQ(EditDistance("AB", "ba"), 1u);
}

TEST(EditDistanceTest, IsTheSameBothWays) {
  const std::string words[] = {"convert", "covnert", "info", "inspect", "verify", "\xc3\xa4"};
  for (const std::string& a : words) {
    for (const std::string& b : words) EXPECT_EQ(EditDistance(a, b), EditDistance(b, a)) << a << b;
  }
}

}  // namespace
}  // namespace shardpack

#include "converters/listing/first_few.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace shardpack {
namespace {

using Names = std::vector<std::string>;

TEST(FirstFewTest, SaysHowManyMoreThereAre) {
  EXPECT_EQ(FirstFew(Names{}, 2), "");
  EXPECT_EQ(FirstFew(Names{"a"}, 2), "a");
  EXPECT_EQ(FirstFew(Names{"a", "b"}, 2), "a, b");
  EXPECT_EQ(FirstFew(Names{"a", "b", "c"}, 2), "a, b and 1 more");
  EXPECT_EQ(AndMore(Names{"a", "b"}, 1002), "a, b and 1000 more");
}

TEST(FirstFewTest, NamesAreEscaped) {
  EXPECT_EQ(FirstFew(Names{"a\nb"}, 1).find('\n'), std::string::npos);
}

TEST(FirstLinesTest, TheFirstFiveInTheOrderOfTheirBytes) {
  FirstLines lines;
  EXPECT_EQ(lines.Text(), "");
  for (const char* line : {"e", "b", "d", "a", "c"}) lines.Add(line);
  EXPECT_EQ(lines.Text(), "a\n  b\n  c\n  d\n  e");
  lines.Add("aa");
  lines.Add("a");
  EXPECT_EQ(lines.count(), 7u);
  EXPECT_EQ(lines.Text(), "a\n  a\n  aa\n  b\n  c\n  ... and 2 more");
}

}  // namespace
}  // namespace shardpack

#include "formats/webdataset/webdataset_layout.h"

#include <limits>
#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace shardpack {
namespace {

std::string Split(std::string_view path) {
  const std::optional<MemberName> name = SplitMemberName(path);
  return name ? std::string(name->key) + "|" + std::string(name->extension) : "none";
}

// Expected values come from webdataset's base_plus_ext.
TEST(WebdatasetLayout, SplitsNamesAtTheFirstDotOfTheBasename) {
  EXPECT_EQ(Split("a.jpg"), "a|jpg");
  EXPECT_EQ(Split("a.seg.png"), "a|seg.png");
  EXPECT_EQ(Split("x.y/a.jpg"), "x.y/a|jpg");
  EXPECT_EQ(Split("./a.jpg"), "./a|jpg");
  EXPECT_EQ(Split("a."), "a|");
  EXPECT_EQ(Split("a..jpg"), "a|.jpg");
  EXPECT_EQ(Split(".h"), "none");
  EXPECT_EQ(Split("d/.h"), "d/|h");
  EXPECT_EQ(Split("x/d/.h"), "x/d/|h");
  EXPECT_EQ(Split("x.y/d/.h"), "x.y/d/|h");
  EXPECT_EQ(Split("d/x.y/.h"), "none");
  EXPECT_EQ(Split("a"), "none");
  EXPECT_EQ(Split("x.y/a"), "none");
  EXPECT_EQ(Split(""), "none");
  EXPECT_EQ(Split("a//.h"), "a//|h");
  EXPECT_EQ(Split("/.h"), "/|h");
}

TEST(WebdatasetLayout, MetaNames) {
  for (const char* name : {"__x__", "__x__/a.jpg", "____", "__a.b__"})
    EXPECT_TRUE(IsMetaName(name));
  for (const char* name : {"__meta__.json", "x/__a__", "__", "___", "_x_", "__x", "x__"}) {
    EXPECT_FALSE(IsMetaName(name)) << name;
  }
}

TEST(WebdatasetLayout, HiddenNames) {
  for (const char* name : {".a.jpg", "d/.h", "__x__/a.jpg", "._a"}) EXPECT_TRUE(IsHiddenName(name));
  for (const char* name : {"a.jpg", ".d/a", "a/b", ""}) EXPECT_FALSE(IsHiddenName(name)) << name;
}

TEST(WebdatasetLayout, LabelsAsPythonReadsThem) {
  EXPECT_EQ(ParseLabel("7"), 7);
  EXPECT_EQ(ParseLabel(" \t+007\r\n"), 7);
  EXPECT_EQ(ParseLabel("-1"), -1);
  EXPECT_EQ(ParseLabel("9223372036854775807"), std::numeric_limits<int64_t>::max());
  for (const char* text :
       {"", " ", "x", "0x1", "1.5", "1 2", "+-1", "--1", "9223372036854775808"}) {
    EXPECT_EQ(ParseLabel(text), std::nullopt) << text;
  }
  EXPECT_EQ(ParseLabel(std::string(65, '0')), std::nullopt);
}

}  // namespace
}  // namespace shardpack

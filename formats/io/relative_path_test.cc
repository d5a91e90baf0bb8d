#include "formats/io/relative_path.h"

#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace shardpack {
namespace {

using std::string_view_literals::operator""sv;

struct Case {
  std::string_view path;
  bool leaves, is_plain;
  std::string_view plain;
};

TEST(RelativePath, EveryKindOfComponent) {
  const Case cases[] = {
      {"1.jpg", false, true, "1.jpg"},
      {"cat/1.jpg", false, true, "cat/1.jpg"},
      {"...", false, true, "..."},
      {"a../..b/c", false, true, "a../..b/c"},
      {"", true, false, ""},
      {".", false, false, ""},
      {"..", true, false, ""},
      {"/", true, false, ""},
      {"/cat/1.jpg", true, false, "cat/1.jpg"},
      {"./cat//1.jpg", false, false, "cat/1.jpg"},
      {"cat/1.jpg/", false, false, "cat/1.jpg"},
      {"cat/.", false, false, "cat"},
      {"../cat", true, false, "cat"},
      {"cat/../../1.jpg", true, false, "cat/1.jpg"},
      {"cat/..", true, false, "cat"},
      {"a\0b"sv, true, false, "a\0b"sv},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(std::string(test.path));
    EXPECT_EQ(LeavesFolder(test.path), test.leaves);
    EXPECT_EQ(IsPlainPath(test.path), test.is_plain);
    EXPECT_EQ(IsPlainName(test.path), test.is_plain && test.path.find('/') == test.path.npos);
    EXPECT_EQ(PlainPath(test.path), test.plain);
  }
}

TEST(RelativePath, SlashesAtTheEnd) {
  EXPECT_EQ(WithoutSlashes("OUT"), "OUT");
  EXPECT_EQ(WithoutSlashes("/data/OUT//"), "/data/OUT");
  EXPECT_EQ(WithoutSlashes("//"), "/");
  EXPECT_EQ(WithoutSlashes(""), "");
}

TEST(RelativePath, ParentFolder) {
  EXPECT_EQ(ParentFolder("/data/list.csv"), "/data");
  EXPECT_EQ(ParentFolder("data/sub/list.csv"), "data/sub");
  EXPECT_EQ(ParentFolder("/list.csv"), "/");
  EXPECT_EQ(ParentFolder("list.csv"), ".");
}

}  // namespace
}  // namespace shardpack

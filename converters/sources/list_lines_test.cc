#include "converters/sources/list_lines.h"

#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// "line:path=label", or the error.
std::vector<std::string> Rows(std::string_view text, const ListOptions& options) {
  std::vector<std::string> rows;
  const absl::Status parsed = ParseList(text, options, "list", [&](const ListRow& row) {
    rows.push_back(std::to_string(row.line) + ":" + std::string(row.path) +
                   (row.label ? "=" + std::string(*row.label) : ""));
    return absl::OkStatus();
  });
  if (!parsed.ok()) rows.push_back(std::string(parsed.message()));
  return rows;
}

TEST(ListLinesTest, Lst) {
  EXPECT_THAT(Rows("3\t1.000000\ta b.jpg\r\n4\t0\tc.jpg\n\n", {.kind = ListKind::kLst}),
              ElementsAre("1:a b.jpg=1.000000", "2:c.jpg=0"));
  EXPECT_THAT(Rows("1\t2\n", {.kind = ListKind::kLst}),
              ElementsAre(HasSubstr("list:1: expected index TAB")));
}

TEST(ListLinesTest, Text) {
  EXPECT_THAT(Rows("a.jpg 1\nb c.jpg  dog\nd.jpg\n", {.kind = ListKind::kText}),
              ElementsAre("1:a.jpg=1", "2:b c.jpg=dog", "3:d.jpg"));
  EXPECT_THAT(Rows("a.jpg \n", {.kind = ListKind::kText}), ElementsAre(HasSubstr("list:1: ")));
  EXPECT_THAT(Rows(" 1\n", {.kind = ListKind::kText}), ElementsAre(HasSubstr("without a path")));
}

TEST(ListLinesTest, Paths) {
  using std::string_literals::operator""s;
  EXPECT_THAT(Rows("a b.jpg\nc.jpg\n", {.kind = ListKind::kPaths}),
              ElementsAre("1:a b.jpg", "2:c.jpg"));
  EXPECT_THAT(Rows("a\nb.jpg\0c.jpg\0"s, {.kind = ListKind::kPaths}),
              ElementsAre("1:a\nb.jpg", "2:c.jpg"));
}

TEST(ListLinesTest, CsvColumns) {
  const std::string text = "n,label,path\n1,x,\"a\nb\"\n2,y,c\n";
  EXPECT_THAT(Rows(text, {.kind = ListKind::kCsv}), ElementsAre("2:a\nb=x", "4:c=y"));
  EXPECT_THAT(Rows(text, {.kind = ListKind::kCsv, .path = "label", .label = "n"}),
              ElementsAre("2:x=1", "4:y=2"));
  EXPECT_THAT(Rows("a,b\n", {.kind = ListKind::kCsv, .path = "1"}), ElementsAre("1:b"));
  EXPECT_THAT(Rows("a,b\n", {.kind = ListKind::kCsv, .path = "0", .label = "class"}),
              ElementsAre(HasSubstr("a number and a name")));
  EXPECT_THAT(Rows("a,b\n", {.kind = ListKind::kTsv, .path = "0", .label = "999999999"}),
              ElementsAre(HasSubstr("too large")));
  EXPECT_THAT(Rows("a,b\n", {.kind = ListKind::kCsv, .path = "18446744073709551616"}),
              ElementsAre(HasSubstr("too large")));
  EXPECT_THAT(Rows("p,7\na,b\n", {.kind = ListKind::kCsv, .path = "p", .label = "7"}),
              ElementsAre("2:a=b"));
  EXPECT_THAT(Rows("a,b\n", {.kind = ListKind::kCsv, .path = "2"}),
              ElementsAre(HasSubstr("no column 2")));
  EXPECT_THAT(Rows(text, {.kind = ListKind::kCsv, .path = "label", .label = "z"}),
              ElementsAre(HasSubstr("no column is named z")));
  // Otherwise the first of the two would win.
  EXPECT_THAT(Rows("path,label,label\na,1,2\n", {.kind = ListKind::kCsv}),
              ElementsAre(HasSubstr("list:1: the columns 2 and 3 are both named label")));
  EXPECT_THAT(Rows("x,x,path\na,b,c\n", {.kind = ListKind::kCsv, .path = "x"}),
              ElementsAre(HasSubstr("the columns 1 and 2 are both named x")));
  EXPECT_THAT(Rows("x,x,path\na,b,c\n", {.kind = ListKind::kCsv}), ElementsAre("2:c"));
}

TEST(ListLinesTest, Jsonl) {
  const ListOptions json{.kind = ListKind::kJsonl};
  EXPECT_THAT(
      Rows("{\"path\":\"a\\u00e9\",\"label\":3,\"x\":{\"path\":\"no\"}}\n{\"file_name\":\"b\"}",
           json),
      ElementsAre("1:a\xc3\xa9=3", "2:b"));
  // The more usual name wins, at any position.
  EXPECT_THAT(Rows("{\"image\":\"b\",\"path\":\"a\"}\n{\"path\":\"a\",\"image\":\"b\"}", json),
              ElementsAre("1:a", "2:a"));
  EXPECT_THAT(Rows("{\"path\":\"a\\u0000\"}", json), ElementsAre(HasSubstr("NUL")));
  EXPECT_THAT(Rows("{\"path\":\"a\"} {}", json), ElementsAre(HasSubstr("not JSON")));
  EXPECT_THAT(Rows("{\"path\":null}", json), ElementsAre(HasSubstr("the path is null")));
  EXPECT_THAT(Rows("\"path\"", json), ElementsAre(HasSubstr("expected an object")));
  EXPECT_THAT(Rows("{\"path\":\"a\"}\n{\"path\":\"b\",\"label\":1,\"label\":2}", json),
              ElementsAre("1:a", HasSubstr("list:2: the member label occurs twice")));
  // Deeper ones are checked only if they are used.
  const std::string deep = "{\"path\":\"a\",\"x\":[{\"b\":1},{\"b\":1,\"c\":[],\"b\":2}]}";
  EXPECT_THAT(Rows(deep, json), ElementsAre("1:a"));
  ListOptions takes = json;
  takes.fields.push_back({.field = "json", .all = true});
  EXPECT_THAT(Rows(deep, takes), ElementsAre(HasSubstr("the member b occurs twice")));
}

TEST(ListLinesTest, MarksOfOrigin) {
  EXPECT_THAT(Rows("\xef\xbb\xbf"
                   "a 1\r\n\r\n",
                   {}),
              ElementsAre("1:a=1"));
  EXPECT_THAT(Rows(std::string("\xff\xfe"
                               "a\0",
                               4),
                   {}),
              ElementsAre(HasSubstr("UTF-16")));
  EXPECT_THAT(Rows("", {}), IsEmpty());
  EXPECT_THAT(Rows("\xef\xbb\xbf\r\n", {}), IsEmpty());
}

TEST(ListLinesTest, MessagesShowTheLineOnceAndShort) {
  const std::string line(1000, 'x');
  const auto rows = Rows("a 1\n\n" + line, {});
  EXPECT_THAT(rows, ElementsAre("1:a=1", "list:2: an empty line"));
  const auto longer = Rows("1\t\t" + line, {.kind = ListKind::kLst});
  ASSERT_EQ(longer.size(), 1u);
  EXPECT_LT(longer[0].size(), 300u);
  EXPECT_THAT(longer[0], HasSubstr("..."));
  EXPECT_THAT(Rows("1\t\x1b[31m", {.kind = ListKind::kLst})[0], ::testing::Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace shardpack

#include "converters/sources/csv_record.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Records = std::vector<std::vector<std::string>>;

Records Read(std::string_view text, char separator = ',') {
  CsvReader csv(text, separator);
  Records records;
  while (csv.Next()) records.emplace_back(csv.cells().begin(), csv.cells().end());
  EXPECT_EQ(csv.error(), "") << text;
  return records;
}

TEST(CsvReaderTest, CellsAndLines) {
  EXPECT_EQ(Read("a,b\nc,d\n"), (Records{{"a", "b"}, {"c", "d"}}));
  EXPECT_EQ(Read("a,b\r\nc,d"), (Records{{"a", "b"}, {"c", "d"}}));
  EXPECT_EQ(Read(",\n\nx"), (Records{{"", ""}, {""}, {"x"}}));
  EXPECT_EQ(Read("a,"), (Records{{"a", ""}}));
  EXPECT_EQ(Read("a\rb,c\r"), (Records{{"a\rb", "c"}}));
  EXPECT_THAT(Read(""), IsEmpty());
}

TEST(CsvReaderTest, Quotes) {
  EXPECT_EQ(Read("\"a,b\",\"c\"\"d\",\"\"\n"), (Records{{"a,b", "c\"d", ""}}));
  EXPECT_EQ(Read("\"a\r\nb\",c\r\nd,e"), (Records{{"a\r\nb", "c"}, {"d", "e"}}));
  EXPECT_EQ(Read("\"a\"\tb\n", '\t'), (Records{{"\"a\"", "b"}}));
}

TEST(CsvReaderTest, LinesAreCountedThroughQuotes) {
  CsvReader csv("a\n\"b\n\nc\"\nd\n", ',');
  std::vector<uint64_t> lines;
  std::vector<std::string> records;
  while (csv.Next()) {
    lines.push_back(csv.line());
    records.emplace_back(csv.record());
  }
  EXPECT_THAT(lines, ElementsAre(1, 2, 5));
  EXPECT_THAT(records, ElementsAre("a", "\"b\n\nc\"", "d"));
}

TEST(CsvReaderTest, WhatIsNotCsv) {
  for (const char* bad :
       {"ok\na\"b", "ok\n\"a", "ok\n\"a\"b", "ok\n\"a\"\rb", "ok\na,\"b\"\"", "ok\n\"a\" ,b"}) {
    CsvReader csv(bad, ',');
    EXPECT_TRUE(csv.Next());
    EXPECT_FALSE(csv.Next()) << bad;
    EXPECT_NE(csv.error(), "") << bad;
    EXPECT_EQ(csv.line(), 2u);
    EXPECT_FALSE(csv.Next());
  }
}

}  // namespace
}  // namespace shardpack

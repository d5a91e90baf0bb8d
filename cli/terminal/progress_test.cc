#include "cli/terminal/progress.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace shardpack::cli {
namespace {

ProgressView View() {
  ProgressView view;
  view.stage = "packing";
  view.done = 6210;
  view.total = 10000;
  view.bytes_in = 5'000'000;
  view.bytes_out = 9'000'000;
  view.skipped = 3;
  view.shards_done = 2;
  view.shards_total = 5;
  view.memory_bytes = 212'000'000;
  view.memory_ceiling = 6'000'000'000;
  view.limit = "reading";
  return view;
}

int Columns(const std::string& line) {
  int columns = 0;
  for (const char c : line) columns += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return columns;
}

TEST(Progress, TheBlockSaysAllThereIsToKnow) {
  const std::vector<std::string> lines =
      RenderProgress(View(), {41200, 38'100'000, 104'000'000, 3}, 100, true);
  std::string all;
  for (const std::string& line : lines) all += line + "\n";
  for (const char* part : {"packing ", "62%", "6,210 of 10,000 images", "ETA 0:03",
                           "41,200 images/s", "38.1 MB/s in", "104 MB/s out", "limit: reading",
                           "skipped 3", "memory 212 MB of 6.00 GB", "shards 2 of 5", "█", "░"}) {
    EXPECT_NE(all.find(part), std::string::npos) << part << " in\n" << all;
  }
}

TEST(Progress, ANarrowTerminalShowsBarAndEtaAndCutsNothing) {
  const std::vector<std::string> lines =
      RenderProgress(View(), {41200, 38'100'000, 104'000'000, 75}, 40, false);
  std::string all;
  for (const std::string& line : lines) all += line + "\n";
  EXPECT_NE(lines[0].find("##--"), std::string::npos) << all;
  for (const char* part : {" 62%", "ETA 1:15\n", "41,200 images/s", "104 MB/s out",
                           "limit: reading\n", "memory 212 MB of 6.00 GB\n", "shards 2 of 5"}) {
    EXPECT_NE(all.find(part), std::string::npos) << part << " in\n" << all;
  }
}

TEST(Progress, NeverWiderThanTheTerminal) {
  for (int columns = 20; columns < 200; columns += 7) {
    for (const bool utf8 : {false, true}) {
      for (const std::string& line :
           RenderProgress(View(), {41200, 38e6, 104e6, 100000}, columns, utf8)) {
        EXPECT_LT(Columns(line), columns) << line;
        if (!utf8) {
          EXPECT_EQ(Columns(line), static_cast<int>(line.size())) << line;
        }
      }
    }
  }
}

TEST(Progress, JsonIsOneLine) {
  const std::string line = ProgressJson(View(), {}, 1.5);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const nlohmann::json json = nlohmann::json::parse(line);
  EXPECT_EQ(json["schema"], "shardpack.progress/1");
  EXPECT_EQ(json["done"], 6210);
  EXPECT_TRUE(json["eta_seconds"].is_null());
}

TEST(Terminal, CountsTheColumnsThatATerminalGives) {
  EXPECT_EQ(DisplayColumns("abc"), 3u);
  EXPECT_EQ(DisplayColumns("日本"), 4u);
  EXPECT_EQ(DisplayColumns("фото"), 4u);
  EXPECT_EQ(DisplayColumns("e\u0301"), 1u);  // a combining accent
  EXPECT_EQ(DisplayColumns("\xff"), 1u);
  EXPECT_EQ(FitColumns("日本語", 5), "日本");
  EXPECT_EQ(FitColumns("abc", 0), "");
  EXPECT_EQ(PaddedTo(6, "日本"), "日本  ");
}

TEST(Terminal, WrapsAtBlanksAndSlashes) {
  EXPECT_EQ(WrappedTo(20, "a short line\n"), "a short line\n");
  EXPECT_EQ(WrappedTo(10, "one two three four"), "one two\nthree four");
  EXPECT_EQ(WrappedTo(12, "in c07/n03590841/x.jpg it"), "in c07/\nn03590841/\nx.jpg it");
  EXPECT_EQ(WrappedTo(8, "averylongname b"), "averylongname\nb");
  EXPECT_EQ(WrappedTo(8, "type:\n  pack some/thing -o out\n"), "type:\n  pack some/thing -o out\n");
}

TEST(Terminal, QuotesForTheShell) {
  EXPECT_EQ(ShellQuoted("photos/"), "photos/");
  EXPECT_EQ(ShellQuoted("my photos"), "'my photos'");
  EXPECT_EQ(ShellQuoted("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellQuoted(""), "''");
  EXPECT_EQ(ShellQuoted("a\nb"), "$'a\\x0ab'");
  EXPECT_EQ(ShellQuoted("$HOME"), "'$HOME'");
}

}  // namespace
}  // namespace shardpack::cli

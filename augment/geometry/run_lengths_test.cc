// RunLengths as pycocotools makes and reads them; text and counts that are none.
#include "augment/geometry/run_lengths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace shardpack {
namespace {

using ::testing::HasSubstr;

TEST(RunLengths, AsPycocotools) {
  std::ifstream file("augment/geometry/testdata/run_lengths.txt");
  uint32_t height = 0, width = 0;
  uint64_t area = 0, crc = 0, rows = 0;
  std::string text;
  while (file >> height >> width >> text >> area >> crc) {
    const auto mask = ParseRunLengths(text, height, width);
    ASSERT_TRUE(mask.ok()) << mask.status() << " " << text;
    std::vector<uint8_t> map(size_t{height} * width, 0);
    uint64_t inside = 0;
    ForEachRun(*mask, [&](uint64_t begin, uint64_t end) {
      inside += end - begin;
      for (uint64_t at = begin; at < end; ++at) map[at % height * width + at / height] = 1;
    });
    EXPECT_EQ(inside, area);
    EXPECT_EQ(::crc32(0, map.data(), static_cast<uInt>(map.size())), crc) << text;
    EXPECT_EQ(*CheckedRunLengths(mask->counts, height, width), *mask);
    ++rows;
  }
  EXPECT_EQ(rows, 65u);
}

TEST(RunLengths, RunsAreInside) {
  const auto mask = CheckedRunLengths({1, 2, 0, 1, 2, 0}, 3, 2);
  ASSERT_TRUE(mask.ok());
  std::vector<std::pair<uint64_t, uint64_t>> runs;
  ForEachRun(*mask, [&](uint64_t begin, uint64_t end) { runs.emplace_back(begin, end); });
  EXPECT_EQ(runs, (std::vector<std::pair<uint64_t, uint64_t>>{{1, 3}, {3, 4}}));
}

TEST(RunLengths, WhatIsNone) {
  const auto why = [](const absl::StatusOr<RunLengths>& mask) {
    EXPECT_TRUE(absl::IsInvalidArgument(mask.status())) << mask.status();
    return std::string(mask.status().message());
  };
  EXPECT_THAT(why(CheckedRunLengths({1, 2}, 2, 2)), HasSubstr("of 3 pixels, not 2 x 2"));
  EXPECT_THAT(why(CheckedRunLengths({1, 4}, 2, 2)), HasSubstr("count 1 leads beyond the 2 x 2"));
  EXPECT_THAT(why(CheckedRunLengths({UINT32_MAX, UINT32_MAX, 6}, 2, 2)), HasSubstr("count 0"));
  EXPECT_THAT(why(CheckedRunLengths({}, 2, 2)), HasSubstr("of 0 pixels"));
  EXPECT_THAT(why(ParseRunLengths("S", 5, 7)), HasSubstr("no count at character 0"));  // goes on
  EXPECT_THAT(why(ParseRunLengths("1 ", 5, 7)), HasSubstr("no count at character 1"));
  EXPECT_THAT(why(ParseRunLengths("1\x90", 5, 7)), HasSubstr("no count at character 1"));
  EXPECT_THAT(why(ParseRunLengths("@", 5, 7)), HasSubstr("no count at character 0"));  // -16
  EXPECT_THAT(why(ParseRunLengths(std::string(20, 'o'), 5, 7)), HasSubstr("character 0"));
  EXPECT_THAT(why(ParseRunLengths("ooooooo?", 5, 7)), HasSubstr("character 0"));
  EXPECT_TRUE(CheckedRunLengths({0}, 0, 0).ok());
  EXPECT_TRUE(ParseRunLengths("", 0, 5).ok());
}

}  // namespace
}  // namespace shardpack

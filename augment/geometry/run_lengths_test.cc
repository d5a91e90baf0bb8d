// RunLengths as pycocotools makes and reads them; text and counts that are none.
#include "augment/geometry/run_lengths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>
#include <string>
#include <vector>

namespace shardpack {
namespace {

using ::testing::HasSubstr;

TEST(RunLengths, AsPycocotools) {
  std::ifstream file("augment/geometry/testdata/run_lengths.txt");
  uint32_t height = 0, width = 0;
  uint64_t area = 0, crc = 0, rows = 0;
  double left = 0, top = 0, box_width = 0, box_height = 0;
  std::string text;
  while (file >> height >> width >> text >> area >> left >> top >> box_width >> box_height >> crc) {
    const auto mask = ParseRunLengths(text, height, width);
    ASSERT_TRUE(mask.ok()) << mask.status() << " " << text;
    EXPECT_EQ(AreaOf(*mask), area);
    EXPECT_EQ(HullOf(*mask), (PixelBox{left, top, left + box_width, top + box_height}));
    std::vector<uint8_t> map(size_t{height} * width, 0);
    Paint(*mask, 1, map);
    EXPECT_EQ(::crc32(0, map.data(), static_cast<uInt>(map.size())), crc) << text;
    EXPECT_EQ(*CheckedRunLengths(mask->counts, height, width), *mask);
    ++rows;
  }
  EXPECT_EQ(rows, 65u);
}

TEST(RunLengths, PaintLeavesTheRest) {
  const auto mask = CheckedRunLengths({1, 2, 3}, 3, 2);
  ASSERT_TRUE(mask.ok());
  std::vector<uint8_t> map = {9, 8, 7, 6, 5, 4};
  Paint(*mask, 1, map);
  EXPECT_EQ(map,
            (std::vector<uint8_t>{9, 8, 1, 6, 1, 4}));  // the first column from its second row on
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

// Compared with the real Pillow: many sizes, up and down, boxes with edges within pixels, all
// filters.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/testing/scratch_folder.h"
#include "images/codecs/decode_testing.h"
#include "images/pixels/pixel_output.h"
#include "images/resize/resize.h"

namespace shardpack {
namespace {

struct Case {
  TestPixels image;
  PixelBox box;
  ResizeOptions options;
};

constexpr std::array<const char*, 4> kFilterNames = {"box", "bilinear", "bicubic", "lanczos"};

std::vector<Case> MakeCases() {
  std::mt19937 random(11);
  const auto size = [&](uint32_t most) { return 1 + static_cast<uint32_t>(random() % most); };
  const auto edges = [&](uint32_t length) {
    std::uniform_real_distribution<double> any(0, length);
    double first = any(random), last = any(random);
    if (first > last) std::swap(first, last);
    if (random() % 3 == 0) return std::pair(0.0, double(length));
    if (last - first < 0.5) return std::pair(0.0, 0.5);
    return std::pair(first, last);
  };
  std::vector<Case> cases;
  for (int i = 0; i < 400; ++i) {
    Case made;
    // Alternates: tiny to tiny, large to small, small to large, anything.
    const uint32_t from = i % 4 == 0 ? 8 : i % 4 == 2 ? 60 : 500;
    const uint32_t to = i % 4 == 0 ? 8 : i % 4 == 1 ? 40 : 300;
    made.image = MakePattern(size(from), size(from), 3, i);
    made.options = {.width = size(to), .height = size(to)};
    made.options.filter = static_cast<ResizeFilter>(i / 4 % 4);
    std::tie(made.box.left, made.box.right) = edges(made.image.width);
    std::tie(made.box.top, made.box.bottom) = edges(made.image.height);
    cases.push_back(std::move(made));
  }
  // Extremes: a large image to a few pixels, one pixel to many; and ordinary sizes.
  cases.push_back({MakePattern(3000, 2000, 3), {0, 0, 3000, 2000}, {.width = 7, .height = 3}});
  cases.push_back({MakePattern(1, 1, 3), {0, 0, 1, 1}, {.width = 50, .height = 70}});
  cases.push_back({MakePattern(500, 375, 3), {0, 0, 500, 375}, {.width = 224, .height = 224}});
  return cases;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

TEST(ResizeAsPillow, WithinOneLevel) {
  const testing::ScratchFolder scratch;
  const std::vector<Case> cases = MakeCases();
  std::ofstream lines(scratch.File("cases")), pixels(scratch.File("pixels"), std::ios::binary);
  for (const Case& c : cases) {
    lines << absl::StrFormat("%d %d %s %a %a %a %a %d %d\n", c.image.width, c.image.height,
                             kFilterNames[static_cast<size_t>(c.options.filter)], c.box.left,
                             c.box.top, c.box.right, c.box.bottom, c.options.width,
                             c.options.height);
    pixels.write(reinterpret_cast<const char*>(c.image.bytes.data()),
                 static_cast<std::streamsize>(c.image.bytes.size()));
  }
  lines.close();
  pixels.close();
  const std::string result = scratch.File("result");
  const std::string command =
      absl::StrCat("/usr/bin/python3 -B images/resize/resize_with_pillow.py ",
                   scratch.File("cases"), " ", scratch.File("pixels"), " ", result);
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  const std::string expected = ReadFile(result);

  Resizer resizer;
  const PixelOutput output({}, 3);
  size_t at = 0, equal = 0;
  for (const Case& c : cases) {
    TestPixels ours{c.options.width, c.options.height, 3, {}};
    ours.bytes.resize(output.Bytes(ours.width, ours.height));
    ASSERT_TRUE(resizer.Resize(c.image.view(), c.box, c.options, output, ours.bytes.data()).ok());
    ASSERT_LE(at + ours.bytes.size(), expected.size());
    int largest = 0;
    for (size_t i = 0; i < ours.bytes.size(); ++i) {
      const int difference = std::abs(ours.bytes[i] - static_cast<uint8_t>(expected[at + i]));
      equal += difference == 0;
      largest = std::max(largest, difference);
    }
    EXPECT_LE(largest, 1) << c.image.width << "x" << c.image.height << " to " << ours.width << "x"
                          << ours.height << " "
                          << kFilterNames[static_cast<size_t>(c.options.filter)] << " box "
                          << c.box.left << "," << c.box.top << " " << c.box.right << ","
                          << c.box.bottom;
    at += ours.bytes.size();
  }
  EXPECT_EQ(at, expected.size());
  const double share = static_cast<double>(equal) / static_cast<double>(at);
  RecordProperty("equal", absl::StrFormat("%.5f of %d", share, at));
  absl::PrintF("equal to Pillow: %.3f %% of %d values, the others differ by 1\n", share * 100, at);
  EXPECT_GT(share, 0.99);
}

}  // namespace
}  // namespace shardpack

// Against the real Pillow: bit for bit the same, as far as its float edges are the same boxes.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cuda/testing/preprocess_testing.h"
#include "formats/testing/scratch_folder.h"

namespace shardpack {
namespace {

constexpr std::array<const char*, 4> kFilterNames = {"box", "bilinear", "bicubic", "lanczos"};

struct Case {
  TestBatch batch;
  ResizeFilter filter;
  uint32_t width, height;
};

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// The results of all samples of all cases, one after the other.
std::string ByPillow(const std::vector<Case>& cases) {
  const testing::ScratchFolder scratch;
  std::ofstream lines(scratch.File("cases")), pixels(scratch.File("pixels"), std::ios::binary);
  for (const Case& c : cases) {
    for (size_t i = 0; i < c.batch.samples.size(); ++i) {
      const PreprocessSample& sample = c.batch.samples[i];
      const Image& bytes = c.batch.images[i].bytes;
      lines << absl::StrFormat("%d %d %s %a %a %a %a %d %d\n", sample.width, sample.height,
                               kFilterNames[static_cast<size_t>(c.filter)], sample.box.left,
                               sample.box.top, sample.box.right, sample.box.bottom, c.width,
                               c.height);
      pixels.write(reinterpret_cast<const char*>(bytes.data()),
                   static_cast<std::streamsize>(bytes.size()));
    }
  }
  lines.close();
  pixels.close();
  const std::string command =
      absl::StrCat("/usr/bin/python3 -B images/resize/resize_with_pillow.py ",
                   scratch.File("cases"), " ", scratch.File("pixels"), " ", scratch.File("result"));
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  return ReadFile(scratch.File("result"));
}

std::vector<Case> MakeCases(bool coarse) {
  constexpr std::array<std::array<uint32_t, 2>, 7> kSizes = {
      {{1, 1}, {5, 6}, {31, 33}, {64, 64}, {100, 37}, {224, 224}, {300, 9}}};
  std::vector<Case> cases;
  for (uint32_t i = 0; i < 56; ++i) {
    Case made;
    made.filter = static_cast<ResizeFilter>(i % 4);
    made.width = kSizes[i / 4 % 7][0];
    made.height = kSizes[i / 4 % 7][1];
    made.batch = MakeTestBatch(
        {.count = 4, .max_side = i < 28 ? 500u : 30u, .seed = 100 + i, .coarse_boxes = coarse});
    for (PreprocessSample& sample : made.batch.samples) sample.mirror = false;
    cases.push_back(std::move(made));
  }
  for (uint32_t i = 0; i < 4; ++i) {
    Case made = {.batch = {}, .filter = static_cast<ResizeFilter>(i), .width = 7, .height = 3};
    AddImage(MakePattern(3000, 2000, 3), {0, 0, 3000, 2000}, false, 0, 0, made.batch);
    AddImage(MakePattern(500, 375, 3), {0, 0, 500, 375}, false, 0, 0, made.batch);
    cases.push_back(std::move(made));
  }
  return cases;
}

struct Differences {
  size_t values = 0, other = 0;
  int largest = 0;
};

Differences Compare(const std::vector<Case>& cases) {
  const std::string expected = ByPillow(cases);
  Differences found;
  for (const Case& c : cases) {
    for (const uint8_t value : OnHost(c.batch, c.width, c.height, c.filter, {})) {
      if (found.values == expected.size()) return {0, 0, 256};
      const int difference = std::abs(value - static_cast<uint8_t>(expected[found.values]));
      ++found.values;
      found.other += difference != 0;
      found.largest = std::max(found.largest, difference);
    }
  }
  EXPECT_EQ(found.values, expected.size());
  return found;
}

TEST(PreprocessAsPillow, BitForBit) {
  const Differences found = Compare(MakeCases(true));
  absl::PrintF("other than Pillow's: %d of %d values\n", found.other, found.values);
  EXPECT_GT(found.values, 5'000'000u);
  EXPECT_EQ(found.other, 0u);
}

// Pillow rounds edges to float; ours are double.
TEST(PreprocessAsPillow, EdgesAnywhereWithinALevel) {
  const Differences found = Compare(MakeCases(false));
  absl::PrintF("other than Pillow's: %d of %d values, by at most %d\n", found.other, found.values,
               found.largest);
  EXPECT_LE(found.largest, 1);
  EXPECT_LT(found.other, found.values / 1000);
}

}  // namespace
}  // namespace shardpack

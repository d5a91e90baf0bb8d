#include "images/augment/crop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace shardpack {
namespace {

constexpr uint64_t kMost = ~uint64_t{0};

PixelBox Box(double left, double top, double width, double height) {
  return {left, top, left + width, top + height};
}

// Computed by an independent implementation in Python. They must never change: a resumed training
// run would see different pictures.
TEST(SampleRandom, Golden) {
  EXPECT_EQ(SampleRandom({0, 0, 0}, 0), 0x2130748aaac80268u);
  EXPECT_EQ(SampleRandom({0, 0, 0}, 1), 0x0cc78fb979ce5090u);
  EXPECT_EQ(SampleRandom({0, 0, 0}, 2), 0xab9aa3dafba6b4acu);
  EXPECT_EQ(SampleRandom({1, 2, 3}, 4), 0x99e29908ca70e935u);
  EXPECT_EQ(SampleRandom({kMost, kMost, kMost}, 0), 0x4f4bc5993dbe5dcdu);
}

TEST(ChooseCrop, Golden) {
  struct Row {
    uint32_t width, height;
    SampleIdentity sample;
    Crop crop;
  };
  const std::vector<Row> rows = {
      {500, 375, {0, 0, 0}, {Box(99, 158, 161, 146), false, true}},
      {500, 375, {1, 0, 0}, {Box(109, 64, 320, 264), false, false}},
      {500, 375, {0, 1, 0}, {Box(167, 29, 268, 219), false, false}},
      {500, 375, {0, 0, 1}, {Box(136, 155, 214, 220), false, false}},
      {500, 375, {42, 7, 1281166}, {Box(104, 16, 365, 359), false, true}},
      {375, 500, {42, 7, 1281166}, {Box(8, 139, 365, 359), false, true}},
      {4000, 30, {1, 1, 1}, {Box(1980, 0, 40, 30), false, true}},  // the fallbacks
      {30, 4000, {1, 1, 1}, {Box(0, 1980, 30, 40), false, true}},
      {1, 1, {5, 5, 5}, {Box(0, 0, 1, 1), false, true}},
      {65500, 976, {3, 3, 3}, {Box(32099, 0, 1301, 976), false, false}},
  };
  const CropOptions options{.flip_probability = 0.5};
  for (const Row& row : rows) {
    const Crop crop = ChooseCrop(options, row.width, row.height, row.sample);
    EXPECT_EQ(crop, row.crop) << row.width << "x" << row.height << ": " << crop.box.left << ","
                              << crop.box.top << " " << crop.box.right << "," << crop.box.bottom;
  }
}

// 20,000 crops of the same implementation, condensed into one number.
TEST(ChooseCrop, GoldenOfMany) {
  const CropOptions options{.flip_probability = 0.5};
  const auto mix = [](uint64_t x) {
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
    x = (x ^ x >> 27) * 0x94D049BB133111EB;
    return x ^ x >> 31;
  };
  uint64_t all = 0;
  for (uint32_t i = 0; i < 20'000; ++i) {
    const Crop crop = ChooseCrop(options, 1 + i % 640, 1 + i * 7 % 480, {9, i % 3, i});
    const double parts[] = {crop.box.left, crop.box.top, crop.box.right - crop.box.left,
                            crop.box.bottom - crop.box.top, crop.flip ? 1.0 : 0.0};
    for (const double part : parts) all = mix(all ^ static_cast<uint64_t>(part));
  }
  EXPECT_EQ(all, 0xc23978e8ce535aecu);
}

// Areas are uniform in the scale, ratios are uniform in their logarithm, and flips have the
// requested probability.
TEST(ChooseCrop, IsDistributedAsAskedFor) {
  const CropOptions options{.min_scale = 0.2, .max_scale = 0.4, .flip_probability = 0.25};
  constexpr int kCrops = 50'000;
  double area = 0, log_ratio = 0, left = 0, flips = 0;
  for (uint64_t id = 0; id < kCrops; ++id) {
    const Crop crop = ChooseCrop(options, 2000, 2000, {3, 1, id});
    const double width = crop.box.right - crop.box.left, height = crop.box.bottom - crop.box.top;
    ASSERT_GE(crop.box.left, 0);
    ASSERT_LE(crop.box.bottom, 2000);
    ASSERT_NEAR(width * height / 4e6, 0.3, 0.101);
    ASSERT_NEAR(std::log(width / height), 0, std::log(4.0 / 3) + 0.002);
    area += width * height / 4e6;
    log_ratio += std::log(width / height);
    left += crop.box.left / (2000 - width);
    flips += crop.flip;
  }
  EXPECT_NEAR(area / kCrops, 0.3, 0.001);
  EXPECT_NEAR(log_ratio / kCrops, 0, 0.003);
  EXPECT_NEAR(left / kCrops, 0.5, 0.006);
  EXPECT_NEAR(flips / kCrops, 0.25, 0.01);
}

TEST(ChooseCrop, CenterIsResizeThenCut) {
  const CropOptions options{.kind = CropKind::kCenter};
  // 500 x 375 becomes 341 x 256, from which 224 x 224 are taken at 58 (58.5 to even) and 16.
  const Crop crop = ChooseCrop(options, 500, 375, {});
  const double x = 500.0 / 341, y = 375.0 / 256;
  EXPECT_TRUE(crop.margin);
  EXPECT_FALSE(crop.flip);
  EXPECT_DOUBLE_EQ(crop.box.left, 58 * x);
  EXPECT_DOUBLE_EQ(crop.box.top, 16 * y);
  EXPECT_DOUBLE_EQ(crop.box.right, (58 + 224) * x);
  EXPECT_DOUBLE_EQ(crop.box.bottom, (16 + 224) * y);
  for (uint32_t width = 1; width < 700; width += 13) {
    for (uint32_t height = 1; height < 700; height += 17) {
      const PixelBox box = ChooseCrop(options, width, height, {}).box;
      ASSERT_TRUE(box.left >= 0 && box.top >= 0 && box.right <= width && box.bottom <= height);
      ASSERT_TRUE(box.left < box.right && box.top < box.bottom);
    }
  }
}

TEST(ChooseCrop, ResizeIsAllOfIt) {
  const CropOptions options{.kind = CropKind::kResize, .flip_probability = 1};
  EXPECT_EQ(ChooseCrop(options, 7, 9, {}), (Crop{{0, 0, 7, 9}, false, true}));
}

TEST(CheckCropOptions, RefusesWhatCannotBe) {
  EXPECT_TRUE(CheckCropOptions({}).ok());
  const double nan = std::nan("");
  for (const CropOptions& options : std::vector<CropOptions>{
           {.width = 0},
           {.height = 65'536},
           {.min_scale = 0},
           {.min_scale = nan},
           {.min_scale = 0.5, .max_scale = 0.4},
           {.max_scale = 1.1},
           {.min_ratio = 2, .max_ratio = 1},
           {.min_ratio = 0},
           {.flip_probability = 1.5},
           {.flip_probability = nan},
           {.kind = CropKind::kCenter, .shortest_side = 223},
       }) {
    EXPECT_FALSE(CheckCropOptions(options).ok());
  }
}

}  // namespace
}  // namespace shardpack

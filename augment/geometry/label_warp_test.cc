// WarpLabels: every label is where the map of points says, and `ignore` is where none is.
#include "augment/geometry/label_warp.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

namespace shardpack {
namespace {

TEST(WarpLabels, AMarkedPixelIsWhereTheAffineSays) {
  std::mt19937 random(6);
  for (int i = 0; i < 100; ++i) {
    constexpr uint32_t kWidth = 40, kHeight = 30;
    std::vector<uint16_t> map(kWidth * kHeight, 0), warped(kWidth * kHeight, 9);
    const uint32_t x = random() % kWidth, y = random() % kHeight;
    map[y * kWidth + x] = 1000;
    // Enlarged, so that the pixel has at least one centre in it.
    const Affine affine = Then({.xx = 2, .yy = 2}, RotationAbout({20, 15}, random() % 360));
    WarpLabels<uint16_t>({map.data(), kWidth, kHeight}, *Inverse(affine), 65535,
                         {warped.data(), kWidth, kHeight});
    for (uint32_t v = 0; v < kHeight; ++v) {
      for (uint32_t u = 0; u < kWidth; ++u) {
        const Point from = (*Inverse(affine))({u + 0.5, v + 0.5});
        const bool inside = from.x >= 0 && from.x < kWidth && from.y >= 0 && from.y < kHeight;
        const bool marked = from.x >= x && from.x < x + 1 && from.y >= y && from.y < y + 1;
        EXPECT_EQ(warped[v * kWidth + u], !inside ? 65535 : marked ? 1000 : 0);
      }
    }
    const Point center = affine({x + 0.5, y + 0.5});
    if (center.x < 0 || center.y < 0 || center.x >= kWidth || center.y >= kHeight) continue;
    EXPECT_EQ(warped[uint32_t(center.y) * kWidth + uint32_t(center.x)], 1000);
  }
}

TEST(WarpLabels, TurnsAndFlipsExactly) {
  const uint8_t map[] = {1, 2, 3, 4, 5, 6};
  uint8_t result[6];
  WarpLabels<uint8_t>({map, 3, 2}, AffineOfFlip(3), 255, {result, 3, 2});
  EXPECT_EQ(std::vector<uint8_t>(result, result + 6), (std::vector<uint8_t>{3, 2, 1, 6, 5, 4}));
  WarpLabels<uint8_t>({map, 3, 2}, {.x0 = 1}, 255, {result, 3, 2});
  EXPECT_EQ(std::vector<uint8_t>(result, result + 6), (std::vector<uint8_t>{2, 3, 255, 5, 6, 255}));
  WarpLabels<uint8_t>({map, 3, 2}, {.x0 = std::numeric_limits<double>::quiet_NaN()}, 255,
                      {result, 3, 2});
  EXPECT_EQ(std::vector<uint8_t>(result, result + 6), std::vector<uint8_t>(6, 255));
}

}  // namespace
}  // namespace shardpack

// Compared with the 8-bit resize, which is compared with Pillow; alpha; 16 bits; arguments.
#include "images/resize/resize_wide.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "images/codecs/decode_testing.h"
#include "images/pixels/pixel_output.h"
#include "images/resize/resize.h"

namespace shardpack {
namespace {

constexpr ResizeFilter kFilters[] = {ResizeFilter::kBox, ResizeFilter::kBilinear,
                                     ResizeFilter::kBicubic, ResizeFilter::kLanczos};

TEST(ResizeWide, AsResizerWithinOneLevel) {
  Resizer resizer;
  for (const ResizeFilter filter : kFilters) {
    for (const auto& [width, height] : {std::pair(20u, 30u), {150u, 9u}, {97u, 61u}, {1u, 1u}}) {
      const TestPixels from = MakePattern(97, 61, 3);
      const PixelBox box{3.25, 0, 90, 60.5};
      TestPixels ours{width, height, 3, Image(size_t{width} * height * 3)};
      TestPixels theirs = ours;
      ASSERT_TRUE(ResizeWide(from.view(), box, width, height, filter, ours.bytes.data()).ok());
      ASSERT_TRUE(resizer
                      .Resize(from.view(), box,
                              {.width = width, .height = height, .filter = filter},
                              PixelOutput({}, 3), theirs.bytes.data())
                      .ok());
      // Resizer rounds to 8 bits between its passes.
      EXPECT_LE(LargestDifference(ours.view(), theirs.view()), 2) << static_cast<int>(filter);
    }
  }
}

TEST(ResizeWide, HiddenColorsDoNotShineThrough) {
  // Transparent red next to opaque green.
  TestPixels from{8, 4, 4, {}};
  for (int i = 0; i < 32; ++i) {
    const Image pixel = i % 8 < 4 ? Image{255, 0, 0, 0} : Image{0, 200, 0, 255};
    from.bytes.insert(from.bytes.end(), pixel.begin(), pixel.end());
  }
  std::vector<uint8_t> out(3 * 2 * 4);
  ASSERT_TRUE(
      ResizeWide(from.view(), {0, 0, 8, 4}, 3, 2, ResizeFilter::kBilinear, out.data()).ok());
  for (size_t i = 0; i < out.size(); i += 4) {
    EXPECT_EQ(out[i], 0);
    if (out[i + 3] > 0) {
      EXPECT_EQ(out[i + 1], 200);
    }
  }
  EXPECT_GT(out[7], 100);
  EXPECT_LT(out[7], 155);
}

TEST(ResizeWide, SixteenBitsAreFinerThanEight) {
  std::vector<uint16_t> ramp(64);
  for (size_t i = 0; i < ramp.size(); ++i) ramp[i] = static_cast<uint16_t>(1000 + i);
  const PixelView view{reinterpret_cast<const uint8_t*>(ramp.data()), 64, 1, 1, 128, 2};
  std::vector<uint16_t> out(32);
  ASSERT_TRUE(ResizeWide(view, {0, 0, 64, 1}, 32, 1, ResizeFilter::kBox,
                         reinterpret_cast<uint8_t*>(out.data()))
                  .ok());
  for (size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], 1000.5 + 2.0 * i, 0.51) << i;
}

TEST(ResizeWide, RefusesBoxesOutside) {
  const TestPixels from = MakePattern(8, 8, 2);
  std::vector<uint8_t> out(2 * 4);
  const PixelBox boxes[] = {{0, 0, 9, 8}, {-1, 0, 8, 8}, {4, 0, 4, 8}, {0, 0, 8, std::nan("")}};
  for (const PixelBox& box : boxes) {
    EXPECT_FALSE(ResizeWide(from.view(), box, 2, 2, ResizeFilter::kBox, out.data()).ok());
  }
  EXPECT_FALSE(ResizeWide(from.view(), {0, 0, 8, 8}, 0, 2, ResizeFilter::kBox, out.data()).ok());
  EXPECT_FALSE(ResizeWide(from.view(), {0, 0, 8, 8}, 2, 65536, ResizeFilter::kBox, nullptr).ok());
}

}  // namespace
}  // namespace shardpack

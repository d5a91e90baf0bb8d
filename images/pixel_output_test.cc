#include "images/pixel_output.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace shardpack {
namespace {

double HalfValue(uint16_t half) {
  const int exponent = half >> 10 & 31, digits = half & 1023;
  const double size = exponent == 0    ? std::ldexp(digits, -24)
                      : exponent == 31 ? (digits == 0 ? std::numeric_limits<double>::infinity()
                                                      : std::numeric_limits<double>::quiet_NaN())
                                       : std::ldexp(1024 + digits, exponent - 25);
  return half & 0x8000 ? -size : size;
}

TEST(FloatToHalf, HalvesStayThemselves) {
  for (uint32_t half = 0; half < 65'536; ++half) {
    const double value = HalfValue(static_cast<uint16_t>(half));
    if (std::isnan(value)) continue;
    ASSERT_EQ(FloatToHalf(static_cast<float>(value)), half);
  }
  EXPECT_TRUE(std::isnan(HalfValue(FloatToHalf(std::numeric_limits<float>::quiet_NaN()))));
}

// Between two halves the nearer one, at the middle the even one.
TEST(FloatToHalf, RoundsToTheNearest) {
  for (uint32_t half = 0; half < 0x7BFF; ++half) {
    const double low = HalfValue(static_cast<uint16_t>(half));
    const double high = HalfValue(static_cast<uint16_t>(half + 1));
    const auto middle = static_cast<float>((low + high) / 2);
    ASSERT_EQ(FloatToHalf(middle), half % 2 == 0 ? half : half + 1);
    ASSERT_EQ(FloatToHalf(std::nextafter(middle, 0.0f)), half);
    ASSERT_EQ(FloatToHalf(-std::nextafter(middle, 1e6f)), (half + 1) | 0x8000);
  }
  EXPECT_EQ(FloatToHalf(65'519.0f), 0x7BFF);
  EXPECT_EQ(FloatToHalf(65'520.0f), 0x7C00);
  EXPECT_EQ(FloatToHalf(-1e30f), 0xFC00);
}

TEST(PixelOutput, BytesAndPlaces) {
  const PixelOutput u8({}, 3), planes({.layout = PixelLayout::kNchw}, 3);
  const PixelOutput gray({.layout = PixelLayout::kNchw}, 1), f32({.type = PixelType::kF32}, 3);
  EXPECT_EQ(u8.Bytes(5, 4), 60u);
  EXPECT_EQ(f32.Bytes(5, 4), 240u);
  EXPECT_TRUE(u8.plain() && gray.plain());
  EXPECT_FALSE(planes.plain() || f32.plain());
  const uint8_t row[] = {1, 2, 3, 4, 5, 6};
  uint8_t out[12] = {};
  planes.PutRow(row, 1, 2, 2, out);
  const uint8_t expected[12] = {0, 0, 1, 4, 0, 0, 2, 5, 0, 0, 3, 6};
  for (int i = 0; i < 12; ++i) EXPECT_EQ(out[i], expected[i]) << i;
}

}  // namespace
}  // namespace shardpack

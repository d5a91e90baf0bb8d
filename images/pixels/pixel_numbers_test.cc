#include "images/pixels/pixel_numbers.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

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

// Between two half floats, the nearer one; in the middle, the even one.
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

TEST(FloatToBfloat, RoundsToTheNearest) {
  for (uint32_t upper = 0; upper < 0x7F80; ++upper) {
    const uint32_t middle = upper << 16 | 0x8000;
    const auto value = [](uint32_t bits) { return std::bit_cast<float>(bits); };
    ASSERT_EQ(FloatToBfloat(value(upper << 16)), upper);
    ASSERT_EQ(FloatToBfloat(value(middle)), upper % 2 == 0 ? upper : upper + 1);
    ASSERT_EQ(FloatToBfloat(value(middle - 1)), upper);
    ASSERT_EQ(FloatToBfloat(-value(middle + 1)), (upper + 1) | 0x8000);
  }
  EXPECT_EQ(FloatToBfloat(std::numeric_limits<float>::infinity()), 0x7F80);
  const uint16_t nan = FloatToBfloat(std::bit_cast<float>(0x7F800001));
  EXPECT_TRUE(std::isnan(std::bit_cast<float>(uint32_t{nan} << 16)));
}

// Bit for bit equal to two divisions, including the sign of zero.
void ExpectDivisions(float mean, float std) {
  const ChannelScale scale = MakeChannelScale(mean, std);
  for (uint32_t sample = 0; sample < 256; ++sample) {
    const float expected = (static_cast<float>(sample) / 255.0f - mean) / std;
    ASSERT_EQ(FloatBits(NormalizedSample(sample, scale)), FloatBits(expected))
        << sample << " mean " << mean << " std " << std;
  }
}

TEST(NormalizedSample, IsTwoDivisions) {
  for (const float mean : {0.0f, 0.485f, 0.456f, 0.406f, 0.5f, 1.0f, 0.48145466f, 0.1307f}) {
    for (const float std : {1.0f, 0.229f, 0.224f, 0.225f, 0.5f, 0.26862954f, 0.3081f, -0.25f}) {
      ExpectDivisions(mean, std);
    }
  }
  std::mt19937 random(5);
  std::uniform_real_distribution<float> any(0.001f, 2);
  for (int i = 0; i < 100'000; ++i) ExpectDivisions(any(random), any(random));
}

}  // namespace
}  // namespace shardpack

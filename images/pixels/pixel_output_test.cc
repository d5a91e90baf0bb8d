#include "images/pixels/pixel_output.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace shardpack {
namespace {

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

TEST(PixelOutput, NumbersOfEveryType) {
  const std::array<float, 3> mean = {0.485f, 0.456f, 0.406f}, std = {0.229f, 0.224f, 0.225f};
  const uint8_t row[] = {0, 128, 255};
  float floats[3];
  uint16_t halves[3];
  const auto format = [&](PixelType type) {
    return OutputFormat{.type = type, .mean = mean, .std = std};
  };
  PixelOutput(format(PixelType::kF32), 3).PutRow(row, 0, 1, 1, floats);
  for (int c = 0; c < 3; ++c) EXPECT_EQ(floats[c], (row[c] / 255.0f - mean[c]) / std[c]);
  PixelOutput(format(PixelType::kF16), 3).PutRow(row, 0, 1, 1, halves);
  for (int c = 0; c < 3; ++c) EXPECT_EQ(halves[c], FloatToHalf(floats[c]));
  PixelOutput(format(PixelType::kBf16), 3).PutRow(row, 0, 1, 1, halves);
  for (int c = 0; c < 3; ++c) EXPECT_EQ(halves[c], FloatToBfloat(floats[c]));
}

}  // namespace
}  // namespace shardpack

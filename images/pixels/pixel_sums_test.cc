#include "images/pixels/pixel_sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "images/codecs/decode_testing.h"

namespace shardpack {
namespace {

// The simplest way, in two passes.
void ExpectAsDefined(const std::vector<TestPixels>& images, const PixelSums& sums) {
  for (uint32_t c = 0; c < 3; ++c) {
    long double total = 0, count = 0, spread = 0;
    const auto each = [&](const auto& visit) {
      for (const TestPixels& image : images) {
        for (size_t i = 0; i < size_t{image.width} * image.height; ++i) {
          visit(image.bytes[i * image.channels + c % image.channels] / 255.0L);
        }
      }
    };
    each([&](long double value) { total += value, ++count; });
    const long double mean = total / count;
    each([&](long double value) { spread += (value - mean) * (value - mean); });
    EXPECT_NEAR(sums.Mean()[c], double(mean), 1e-14);
    EXPECT_NEAR(sums.Deviation()[c], double(std::sqrt(spread / count)), 1e-14);
    EXPECT_EQ(sums.pixels, uint64_t(count));
  }
}

TEST(PixelSums, MeanAndDeviationAreAsDefined) {
  const std::vector<TestPixels> images = {MakePattern(97, 61, 3), MakePattern(10, 300, 1),
                                          MakePattern(70000, 1, 3)};
  PixelSums all, parts;
  for (const TestPixels& image : images) {
    all.Add(image.view());
    PixelSums one;
    one.Add(image.view());
    parts.Merge(one);
  }
  ExpectAsDefined(images, all);
  EXPECT_EQ(parts.Mean(), all.Mean());
  EXPECT_EQ(parts.Deviation(), all.Deviation());
}

TEST(PixelSums, ExtremesAndNothing) {
  EXPECT_EQ(PixelSums().Mean()[0], 0);
  EXPECT_EQ(PixelSums().Deviation()[2], 0);
  TestPixels white{70000, 3, 3, Image(70000 * 9, 255)};
  PixelSums sums;
  sums.Add(white.view());
  EXPECT_EQ(sums.Mean()[1], 1);
  EXPECT_EQ(sums.Deviation()[1], 0);
  // A trillion pixels, one of which is black: the difference is not lost.
  sums.pixels = 1'000'000'000'000;
  sums.sum.fill(sums.pixels * 255 - 255);
  sums.squares.fill(sums.pixels * 65025 - 65025);
  EXPECT_NEAR(sums.Deviation()[0], 1e-6, 1e-12);
}

}  // namespace
}  // namespace shardpack

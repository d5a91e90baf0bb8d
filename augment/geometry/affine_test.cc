// Affine: points are where pixels are; maps compose and invert.
#include "augment/geometry/affine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "images/augment/pixel_pipeline.h"

namespace shardpack {
namespace {

void ExpectNear(Point a, Point b, double most = 1e-9) {
  EXPECT_NEAR(a.x, b.x, most);
  EXPECT_NEAR(a.y, b.y, most);
}

TEST(Affine, CropTakesEdgesToEdges) {
  const Affine crop = AffineOfCrop({10, 20, 110, 70}, 224, 224);
  ExpectNear(crop({10, 20}), {0, 0});
  ExpectNear(crop({110, 70}), {224, 224});
  ExpectNear(crop({60, 45}), {112, 112});
  const Affine mirrored = AffineOf({.box = {10, 20, 110, 70}, .flip = true}, 224, 224);
  ExpectNear(mirrored({10, 20}), {224, 0});
  ExpectNear(mirrored({110, 70}), {0, 224});
}

TEST(Affine, RotationIsCounterClockwiseAsSeen) {
  const Affine quarter = RotationAbout({50, 50}, 90);
  ExpectNear(quarter({50, 50}), {50, 50});
  ExpectNear(quarter({100, 50}), {50, 0});  // the right edge comes up
  EXPECT_FALSE(quarter.upright());
  EXPECT_TRUE(AffineOfFlip(7).upright());
}

TEST(Affine, ComposesAndInverts) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> any(-3, 3);
  for (int i = 0; i < 1000; ++i) {
    const Affine a = {any(random), any(random), any(random), any(random), any(random), any(random)};
    const Affine b = RotationAbout({any(random), any(random)}, 100 * any(random));
    const Point p = {any(random), any(random)};
    ExpectNear(Then(a, b)(p), b(a(p)));
    if (std::abs(a.xx * a.yy - a.xy * a.yx) < 0.01) continue;
    const std::optional<Affine> back = Inverse(a);
    ASSERT_TRUE(back.has_value());
    ExpectNear((*back)(a(p)), p, 1e-6);
    ExpectNear(Then(a, *back)(p), p, 1e-6);
  }
}

TEST(Affine, WhatHasNoInverse) {
  EXPECT_EQ(Inverse({.xx = 1, .xy = 2, .yx = 2, .yy = 4}), std::nullopt);
  EXPECT_EQ(Inverse({.xx = 0, .yy = 0}), std::nullopt);
  EXPECT_EQ(Inverse({.xx = std::numeric_limits<double>::quiet_NaN()}), std::nullopt);
  EXPECT_EQ(Inverse({.xx = std::numeric_limits<double>::infinity()}), std::nullopt);
  EXPECT_EQ(Inverse({.xx = 1e-320, .x0 = 1}), std::nullopt);  // its numbers have no inverse
}

// The bright spot of an image is where the map says, after any crop, scale and flip.
TEST(Affine, AMarkedPixelIsWhereItSays) {
  std::mt19937 random(2);
  for (uint32_t i = 0; i < 300; ++i) {
    const uint32_t width = 40 + random() % 200, height = 40 + random() % 200;
    std::vector<uint8_t> gray(size_t{width} * height, 0);
    const uint32_t left = random() % (width - 8), top = random() % (height - 8);
    for (uint32_t y = 0; y < 8; ++y) {
      for (uint32_t x = 0; x < 8; ++x) gray[(top + y) * width + left + x] = 255;
    }
    PixelPipelineOptions options;
    options.channels = 1;
    const auto kind = static_cast<CropKind>(i % 3);
    options.crop = {.kind = kind,
                    .width = 32 + i % 80,
                    .height = 32 + i % 50,
                    .shortest_side = 120,
                    .flip_probability = 0.5};
    const SampleIdentity sample = {.seed = 3, .epoch = 1, .id = i};
    auto pipeline = PixelPipeline::Create(options);
    ASSERT_TRUE(pipeline.ok());
    std::vector<uint8_t> out(pipeline->output_bytes());
    ASSERT_TRUE(pipeline
                    ->Run(std::as_bytes(std::span(gray)), RawImageInfo(height, width, 1), sample,
                          out.data())
                    .ok());
    const Crop crop = ChooseCrop(options.crop, width, height, sample);
    const Affine affine = AffineOf(crop, options.crop.width, options.crop.height);
    const Point a = affine({double(left), double(top)});
    const Point b = affine({left + 8.0, top + 8.0});
    const double l = std::min(a.x, b.x), r = std::max(a.x, b.x);
    // Only spots that are seen whole, and well apart from the border.
    if (l < 4 || a.y < 4 || r > options.crop.width - 4 || b.y > options.crop.height - 4) continue;
    double sum = 0, x_sum = 0, y_sum = 0;
    for (uint32_t y = 0; y < options.crop.height; ++y) {
      for (uint32_t x = 0; x < options.crop.width; ++x) {
        const double value = out[y * options.crop.width + x];
        sum += value;
        x_sum += value * (x + 0.5);
        y_sum += value * (y + 0.5);
      }
    }
    ASSERT_GT(sum, 0);
    EXPECT_NEAR(x_sum / sum, (l + r) / 2, 0.1) << i;
    EXPECT_NEAR(y_sum / sum, (a.y + b.y) / 2, 0.1) << i;
    EXPECT_NEAR(sum / 255, (r - l) * (b.y - a.y), 0.08 * (r - l) * (b.y - a.y) + 1) << i;
  }
}

}  // namespace
}  // namespace shardpack

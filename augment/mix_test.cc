#include "augment/mix.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace shardpack {
namespace {

TEST(MixTest, OptionsAreChecked) {
  const MixOptions good{.mixup_alpha = 0.2, .classes = 10};
  EXPECT_TRUE(CheckMixOptions(good, 64).ok());
  const auto message = [&](auto change) {
    MixOptions options = good;
    change(options);
    return std::string(CheckMixOptions(options, 64).message());
  };
  EXPECT_EQ(message([](MixOptions& o) { o.mixup_alpha = -1; }),
            "mix: alpha is -1; it is 0 or from 0.001 to 1000");
  EXPECT_EQ(message([](MixOptions& o) { o.classes = 0; }),
            "mix: classes is 0; it is the number of classes, 1 to 1000000");
  EXPECT_EQ(message([](MixOptions& o) { o.group = 6; }),
            "mix: groups of 6 do not divide a batch of 64");
  EXPECT_EQ(message([](MixOptions& o) { o.group = 1; }), "mix: group is 1; it is at least 2");
  EXPECT_EQ(message([](MixOptions& o) { o.mixup_alpha = 0; }),
            "mix: neither mixup nor cutmix nor smoothing is above 0, so nothing would be done");
  EXPECT_EQ(message([](MixOptions& o) { o.cutmix_share = 0.3; }),
            "mix: cutmix_share is for mixup and cutmix together, of which one is 0");
  EXPECT_EQ(message([](MixOptions& o) { o.smoothing = 1; }),
            "mix: smoothing is 1; it is at least 0 and below 1");
}

// Beta(a, a) has mean 1/2 and variance 1 / (4 (2a + 1)).
TEST(MixTest, WeightsHaveTheirDistribution) {
  for (const double alpha : {0.2, 1.0, 3.0}) {
    const MixOptions options{.mixup_alpha = alpha, .classes = 2};
    double sum = 0, squares = 0;
    constexpr int kDraws = 20'000;
    for (uint64_t i = 0; i < kDraws; ++i) {
      const double weight = DrawMix(options, 1, 2, i, 8, 8).weight;
      EXPECT_EQ(weight * 65536, static_cast<uint32_t>(weight * 65536));
      sum += weight;
      squares += weight * weight;
    }
    const double mean = sum / kDraws, variance = squares / kDraws - mean * mean;
    EXPECT_NEAR(mean, 0.5, 0.01) << alpha;
    EXPECT_NEAR(variance, 1 / (4 * (2 * alpha + 1)), 0.005) << alpha;
  }
}

TEST(MixTest, CutMixWeighsItsBox) {
  const MixOptions options{.cutmix_alpha = 1, .classes = 2};
  for (uint64_t i = 0; i < 1000; ++i) {
    const MixDraw draw = DrawMix(options, 1, 2, i, 32, 24);
    EXPECT_LE(draw.box.left + draw.box.width, 32u);
    EXPECT_LE(draw.box.top + draw.box.height, 24u);
    EXPECT_EQ(draw.weight, draw.box.width * draw.box.height / (32.0 * 24));
  }
}

TEST(MixTest, BothAreDrawnInTheirShares) {
  const MixOptions options{
      .mixup_alpha = 1, .cutmix_alpha = 1, .probability = 0.5, .cutmix_share = 0.25, .classes = 2};
  int none = 0, cut = 0;
  for (uint64_t i = 0; i < 4000; ++i) {
    const MixDraw draw = DrawMix(options, 1, 2, i, 64, 64);
    none += draw.mixed() ? 0 : 1;
    cut += draw.box.empty() ? 0 : 1;
  }
  EXPECT_NEAR(none, 2000, 150);
  EXPECT_NEAR(cut, 500, 100);
}

TEST(MixTest, PixelsAreBlendedOrCut) {
  const std::vector<uint8_t> own = {0, 100, 200, 255, 10, 20}, other = {255, 0, 100, 255, 30, 40};
  std::vector<uint8_t> out(6);
  const PixelView view{own.data(), 3, 2, 1, 3};
  MixPixels({.weight = 0.25}, view, other.data(), out.data());
  EXPECT_EQ(out, (std::vector<uint8_t>{64, 75, 175, 255, 15, 25}));
  MixPixels({.weight = 1.0 / 3, .box = {1, 0, 1, 2}}, view, other.data(), out.data());
  EXPECT_EQ(out, (std::vector<uint8_t>{0, 0, 200, 255, 30, 20}));
}

TEST(MixTest, LabelsAreShared) {
  const MixOptions options{.mixup_alpha = 1, .classes = 4};
  std::vector<float> row(4);
  SoftLabels(options, 0.25, 1, 3, row);
  EXPECT_EQ(row, (std::vector<float>{0, 0.75f, 0, 0.25f}));
  SoftLabels(options, 0.25, 2, 2, row);
  EXPECT_EQ(row, (std::vector<float>{0, 0, 1, 0}));
  SoftLabels(options, 0.25, -1, -1, row);  // neither has a label
  EXPECT_EQ(row, (std::vector<float>{0, 0, 0, 0}));
  SoftLabels({.classes = 4, .smoothing = 0.5}, 0, 1, 3, row);
  EXPECT_EQ(row, (std::vector<float>{0.125f, 0.625f, 0.125f, 0.125f}));
}

}  // namespace
}  // namespace shardpack

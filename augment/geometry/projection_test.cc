#include "augment/geometry/projection.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace shardpack {
namespace {

const Projection kTilt({1.1, 0.2, -3, 0.1, 0.9, 4, 0.002, -0.001, 1.2});

TEST(Projection, AnAffineMapIsOneOfThem) {
  const Affine turn = RotationAbout({30, 20}, 40);
  const Affine crop = AffineOfCrop({10, 20, 110, 70}, 224, 224);
  EXPECT_EQ(Projection(turn).affine(), turn);
  EXPECT_EQ(Projection(turn)({7, 9}), turn({7, 9}));
  EXPECT_EQ(Then(Projection(crop), Projection(turn)).affine(), Then(crop, turn));
  EXPECT_EQ(Inverse(Projection(turn))->affine(), Inverse(turn));
  EXPECT_NEAR(Projection(crop).AreaScaleAt({3, 4}), 2.24 * 4.48, 1e-12);
  EXPECT_LT(Projection(AffineOfFlip(9)).AreaScaleAt({3, 4}), 0);
  EXPECT_FALSE(kTilt.affine().has_value());
}

TEST(Projection, ComposesAndInverts) {
  const Projection other(Then(RotationAbout({5, 6}, 20), AffineOfFlip(40)));
  const auto back = Inverse(kTilt);
  ASSERT_TRUE(back.has_value());
  for (const Point p : {Point{0, 0}, Point{40, 3}, Point{7, 31}}) {
    const Point both = Then(kTilt, other)(p), step = other(kTilt(p));
    EXPECT_NEAR(both.x, step.x, 1e-9);
    EXPECT_NEAR(both.y, step.y, 1e-9);
    const Point again = (*back)(kTilt(p));
    EXPECT_NEAR(again.x, p.x, 1e-9);
    EXPECT_NEAR(again.y, p.y, 1e-9);
  }
}

TEST(Projection, AreasGrowAsSmallSquaresDo) {
  constexpr double kSide = 1e-4;
  for (const Point p : {Point{0, 0}, Point{40, 3}, Point{7, 31}}) {
    const Point a = kTilt(p), b = kTilt({p.x + kSide, p.y}), c = kTilt({p.x, p.y + kSide});
    const double area = (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
    EXPECT_NEAR(kTilt.AreaScaleAt(p), area / (kSide * kSide), 1e-4);
  }
}

TEST(Projection, WhatHasNoInverse) {
  EXPECT_FALSE(Inverse(Projection({1, 2, 3, 2, 4, 6, 0, 1, 1})).has_value());
  EXPECT_FALSE(Inverse(Projection({1, 0, 0, 0, NAN, 0, 0, 1, 1})).has_value());
  EXPECT_FALSE(Inverse(Projection(Affine{.xx = 0})).has_value());
}

}  // namespace
}  // namespace shardpack

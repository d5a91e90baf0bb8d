// Boxes as torchvision moves them and as brute force finds them; polygons and keypoints.
#include "augment/geometry/shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>
#include <string>
#include <vector>

namespace shardpack {
namespace {

using ::testing::HasSubstr;

TEST(MoveBox, AsTorchvision) {
  std::ifstream file("augment/geometry/testdata/boxes.txt");
  size_t rows = 0;
  double largest = 0;
  Movement movement;
  PixelBox box, expected;
  double left = 0, top = 0, width = 0, height = 0, flip = 0, degrees = 0;
  while (file >> movement.source_width >> movement.source_height >> left >> top >> width >>
         height >> movement.width >> movement.height >> flip >> degrees >> box.left >> box.top >>
         box.right >> box.bottom >> expected.left >> expected.top >> expected.right >>
         expected.bottom) {
    movement.crop = {.box = {left, top, left + width, top + height}, .flip = flip != 0};
    const Projection turn(RotationAbout({movement.width / 2, movement.height / 2}, degrees));
    movement.warps = degrees == 0 ? std::span<const Projection>() : std::span(&turn, 1);
    const PixelBox moved = MoveBox(box, movement).box;
    for (const double difference : {moved.left - expected.left, moved.top - expected.top,
                                    moved.right - expected.right, moved.bottom - expected.bottom}) {
      largest = std::max(largest, std::abs(difference));
      EXPECT_NEAR(difference, 0, 1e-4) << "box " << rows;
    }
    ++rows;
  }
  EXPECT_EQ(rows, 1200u);
  RecordProperty("largest_difference", std::to_string(largest));
}

// Points of the box that are seen, one after the other.
TEST(MoveBox, TheHullOfWhatIsSeen) {
  std::mt19937 random(4);
  std::uniform_real_distribution<double> unit(0, 1);
  for (int i = 0; i < 200; ++i) {
    Movement movement = {.source_width = 100, .source_height = 80, .width = 60, .height = 50};
    const double l = 60 * unit(random), t = 40 * unit(random);
    movement.crop = {.box = {l, t, l + 40 * unit(random) + 0.1, t + 40 * unit(random) + 0.1},
                     .flip = i % 2 == 0};
    const PixelBox box = {100 * unit(random) - 10, 80 * unit(random) - 10, 0, 0};
    const PixelBox whole = {box.left, box.top, box.left + 50 * unit(random) + 1,
                            box.top + 50 * unit(random) + 1};
    const MovedBox moved = MoveBox(whole, movement);
    const Affine affine = *movement.map().affine();
    constexpr int kSteps = 100;
    PixelBox hull = {1e9, 1e9, -1e9, -1e9};
    int inside = 0, seen = 0;
    for (int y = 0; y <= kSteps; ++y) {
      for (int x = 0; x <= kSteps; ++x) {
        const Point p = {whole.left + (whole.right - whole.left) * x / kSteps,
                         whole.top + (whole.bottom - whole.top) * y / kSteps};
        if (p.x < 0 || p.y < 0 || p.x > 100 || p.y > 80) continue;
        ++inside;
        const Point q = affine(p);
        if (q.x < 0 || q.y < 0 || q.x > 60 || q.y > 50) continue;
        ++seen;
        hull = {std::min(hull.left, q.x), std::min(hull.top, q.y), std::max(hull.right, q.x),
                std::max(hull.bottom, q.y)};
      }
    }
    EXPECT_EQ(moved.outside,
              whole.left < 0 || whole.top < 0 || whole.right > 100 || whole.bottom > 80);
    if (seen == 0) continue;
    const double step_x = std::abs(affine.xx) * 0.52, step_y = std::abs(affine.yy) * 0.52;
    EXPECT_NEAR(moved.box.left, hull.left, step_x);
    EXPECT_NEAR(moved.box.right, hull.right, step_x);
    EXPECT_NEAR(moved.box.top, hull.top, step_y);
    EXPECT_NEAR(moved.box.bottom, hull.bottom, step_y);
    EXPECT_NEAR(moved.visible, double(seen) / inside, 0.08);
  }
}

TEST(MoveBox, WhatIsKept) {
  const Movement movement = {.source_width = 100,
                             .source_height = 100,
                             .crop = {.box = {0, 0, 50, 50}},
                             .width = 50,
                             .height = 50};
  const auto moved = [&](PixelBox box) { return MoveBox(box, movement); };
  EXPECT_TRUE(IsKept(moved({10, 10, 11, 11}), 1));
  EXPECT_FALSE(IsKept(moved({10, 10, 10.9, 20}), 0)) << "below a pixel";
  EXPECT_TRUE(IsKept(moved({40, 10, 60, 20}), 0.5));
  EXPECT_FALSE(IsKept(moved({40, 10, 60, 20}), 0.51));
  EXPECT_FALSE(IsKept(moved({60, 60, 90, 90}), 0)) << "outside";
  EXPECT_FALSE(IsKept(moved({20, 20, 20, 20}), 0)) << "without area";
  // Its part beyond the image does not count.
  EXPECT_TRUE(IsKept(moved({-20, 10, 20, 20}), 1));
  EXPECT_TRUE(moved({-20, 10, 20, 20}).outside);
  EXPECT_EQ(moved({-20, -20, -10, -10}).visible, 0);
}

// What a warp moves out of the result is no longer visible either.
TEST(MoveBox, WarpsTakeTheirShare) {
  const Projection right(Affine{.x0 = 45});
  const Movement movement = {.source_width = 100,
                             .source_height = 100,
                             .crop = {.box = {0, 0, 50, 50}},
                             .width = 50,
                             .height = 50,
                             .warps = std::span(&right, 1)};
  const MovedBox moved = MoveBox({0, 10, 20, 20}, movement);
  EXPECT_EQ(moved.box, (PixelBox{45, 10, 50, 20}));
  EXPECT_DOUBLE_EQ(moved.visible, 0.25);
  EXPECT_DOUBLE_EQ(MoveBox({0, 40, 20, 60}, movement).visible, 0.125);
}

// A turn of the line on the border to which an object outside the crop is clipped has an area.
TEST(MoveBox, WhatIsBelowAPixelBeforeAWarpIsNotKept) {
  Movement movement = {.source_width = 320,
                       .source_height = 240,
                       .crop = {.box = {16, 7, 122, 88}},
                       .width = 160,
                       .height = 120};
  const Projection turn(RotationAbout({80, 60}, 25));
  movement.warps = std::span(&turn, 1);
  const PixelBox outside = {205, 19, 239, 43};
  EXPECT_GT(MoveBox(outside, movement).box.right - MoveBox(outside, movement).box.left, 1);
  EXPECT_FALSE(IsKept(MoveBox(outside, movement), 0));
  EXPECT_FALSE(IsKept(MoveBox({50, 30, 50, 60}, movement), 0)) << "a line within the crop";
  EXPECT_FALSE(IsKept(MoveBox({50, 30, 50.5, 60}, movement), 0)) << "below a pixel";
  EXPECT_FALSE(IsKept(MoveBox({121.5, 30, 180, 60}, movement), 0)) << "its part in the crop";
  EXPECT_TRUE(IsKept(MoveBox({50, 30, 52, 60}, movement), 0));
  EXPECT_TRUE(IsKept(MoveBox({120, 30, 180, 60}, movement), 0));
  // The last but one has led it out.
  const Projection out_and_back[] = {Projection(Affine{.x0 = 200}), turn};
  movement.warps = out_and_back;
  EXPECT_FALSE(IsKept(MoveBox({50, 30, 80, 60}, movement), 0));
}

double AreaOf(const Ring& ring) {
  double twice = 0;
  for (size_t i = 0; i < ring.size(); ++i) {
    const Point &a = ring[i], &b = ring[(i + 1) % ring.size()];
    twice += a.x * b.y - b.x * a.y;
  }
  return std::abs(twice) / 2;
}

bool IsInside(const Ring& ring, Point p) {
  bool inside = false;
  for (size_t i = 0; i < ring.size(); ++i) {
    const Point &a = ring[i], &b = ring[(i + 1) % ring.size()];
    if ((a.y > p.y) != (b.y > p.y) && p.x < (b.x - a.x) * (p.y - a.y) / (b.y - a.y) + a.x)
      inside = !inside;
  }
  return inside;
}

// Concave ones too: the area is that of the points of the polygon within the box.
TEST(Clip, TheAreaIsThatOfTheCommonPart) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> unit(0, 1);
  for (int i = 0; i < 100; ++i) {
    Ring star;
    const int corners = 3 + i % 9;
    for (int k = 0; k < corners; ++k) {
      const double angle = 6.283185307 * k / corners, far = 10 + 40 * unit(random);
      star.push_back({50 + far * std::cos(angle), 50 + far * std::sin(angle)});
    }
    const PixelBox box = {20 + 30 * unit(random), 20 + 30 * unit(random), 55 + 30 * unit(random),
                          55 + 30 * unit(random)};
    const Ring kept = Clip(star, box);
    int common = 0;
    constexpr int kSteps = 300;
    for (int y = 0; y < kSteps; ++y) {
      for (int x = 0; x < kSteps; ++x) {
        const Point p = {box.left + (box.right - box.left) * (x + 0.5) / kSteps,
                         box.top + (box.bottom - box.top) * (y + 0.5) / kSteps};
        common += IsInside(star, p) ? 1 : 0;
      }
    }
    const double area = (box.right - box.left) * (box.bottom - box.top) * common / kSteps / kSteps;
    EXPECT_NEAR(AreaOf(kept), area, 5) << i;
    for (const Point& p : kept) {
      EXPECT_TRUE(p.x >= box.left && p.x <= box.right && p.y >= box.top && p.y <= box.bottom);
    }
  }
}

TEST(Clip, OutsideNothingIsLeft) {
  const Ring triangle = {{0, 0}, {5, 0}, {0, 5}};
  EXPECT_TRUE(Clip(triangle, {10, 10, 20, 20}).empty());
  EXPECT_EQ(Clip(triangle, {-1, -1, 20, 20}), triangle);
  EXPECT_TRUE(Clip({}, {0, 0, 1, 1}).empty());
}

TEST(MoveRings, TheHullIsWithinTheBox) {
  const Ring triangle = {{10, 10}, {90, 10}, {50, 90}};
  const Projection turn(RotationAbout({25, 25}, 30));
  const Movement movement = {.source_width = 100,
                             .source_height = 100,
                             .crop = {.box = {20, 0, 80, 60}, .flip = true},
                             .width = 50,
                             .height = 50,
                             .warps = std::span(&turn, 1)};
  const MovedRings moved = MoveRings(std::span(&triangle, 1), movement);
  EXPECT_FALSE(moved.small);
  const PixelBox hull = HullOf(moved.rings);
  const PixelBox box = MoveBox({10, 10, 90, 90}, movement).box;
  EXPECT_LE(box.left, hull.left + 1e-9);
  EXPECT_LE(box.top, hull.top + 1e-9);
  EXPECT_GE(box.right, hull.right - 1e-9);
  EXPECT_GE(box.bottom, hull.bottom - 1e-9);
  EXPECT_LT((hull.right - hull.left) * (hull.bottom - hull.top),
            (box.right - box.left) * (box.bottom - box.top));
  EXPECT_EQ(HullOf({}), PixelBox());
}

TEST(MoveRings, WhatIsBelowAPixelBeforeAWarpIsSmall) {
  const Projection turn(RotationAbout({25, 25}, 30));
  Movement movement = {.source_width = 100,
                       .source_height = 100,
                       .crop = {.box = {20, 20, 70, 70}},
                       .width = 50,
                       .height = 50,
                       .warps = std::span(&turn, 1)};
  const auto moved = [&](const std::vector<Ring>& rings) { return MoveRings(rings, movement); };
  const Ring seen = {{30, 30}, {60, 30}, {45, 60}};
  const Ring touching = {{10, 30}, {20, 30}, {20, 60}, {10, 60}};
  const Ring thin = {{30, 30}, {30.5, 30}, {30.5, 60}, {30, 60}};
  // From the lower left corner clockwise around the crop, and back.
  const Ring around = {{10, 80}, {10, 10}, {80, 10}, {80, 80},
                       {75, 80}, {75, 15}, {15, 15}, {15, 80}};
  EXPECT_FALSE(moved({seen}).small);
  EXPECT_TRUE(moved({thin}).small);
  for (const Ring& ring : {touching, around}) {
    EXPECT_TRUE(moved({ring}).small);
    EXPECT_TRUE(moved({ring}).rings.empty());
    EXPECT_EQ(moved({ring, seen}).rings, moved({seen}).rings);
    EXPECT_FALSE(moved({ring, seen}).small);
  }
  const Ring whole = {{0, 0}, {100, 0}, {100, 100}, {0, 100}};
  EXPECT_FALSE(moved({whole}).small) << "along the border, but around all";
  // A frame with a slit, as holes are drawn, around the crop: without a warp, too.
  const Ring frame = {{40, 80}, {10, 80}, {10, 10}, {80, 10}, {80, 80}, {60, 80},
                      {60, 75}, {75, 75}, {75, 15}, {15, 15}, {15, 75}, {40, 75}};
  movement.warps = {};
  for (const Ring& ring : {touching, around, frame}) {
    EXPECT_TRUE(moved({ring}).small);
    EXPECT_TRUE(moved({ring}).rings.empty());
  }
  EXPECT_FALSE(moved({whole}).small);
}

TEST(MoveKeypoint, PixelsToPixels) {
  // Twice as large: the centre of pixel 3 is at 3.5, then at 7, in pixel coordinates 6.5.
  Movement movement = {.source_width = 10,
                       .source_height = 10,
                       .crop = {.box = {0, 0, 10, 10}},
                       .width = 20,
                       .height = 20};
  EXPECT_EQ(MoveKeypoint({3, 4, 2}, movement), (Keypoint{6.5, 8.5, 2}));
  // A flip alone is W - 1 - x, as torchvision's.
  movement.width = movement.height = 10;
  movement.crop.flip = true;
  EXPECT_EQ(MoveKeypoint({3, 4, 1}, movement), (Keypoint{6, 4, 1}));
  EXPECT_EQ(MoveKeypoint({0, 9, 1}, movement), (Keypoint{9, 9, 1}));
  EXPECT_EQ(MoveKeypoint({3, 4, 0}, movement), Keypoint());
  EXPECT_EQ(MoveKeypoint({-1, 4, 2}, movement), Keypoint());
  EXPECT_EQ(MoveKeypoint({10, 4, 2}, movement), Keypoint());
  movement.crop.box = {0, 0, 5, 10};
  EXPECT_EQ(MoveKeypoint({7, 4, 2}, movement), Keypoint()) << "outside the crop";
  // Out and back in again stays out.
  movement.crop.box = {0, 0, 10, 10};
  const Projection warps[] = {Projection(Affine{.x0 = 100}), Projection(Affine{.x0 = -100})};
  movement.warps = warps;
  EXPECT_EQ(MoveKeypoint({7, 4, 2}, movement), Keypoint());
}

TEST(Pairs, SwapAndAreChecked) {
  const KeypointPair eyes[] = {{1, 2}, {3, 4}};
  std::vector<Keypoint> points(5);
  for (size_t i = 0; i < points.size(); ++i) points[i] = {double(i), 0, 2};
  ASSERT_TRUE(CheckPairs(eyes, 5).ok());
  SwapPairs(eyes, points);
  EXPECT_EQ(points[0].x, 0);
  EXPECT_EQ(points[1].x, 2);
  EXPECT_EQ(points[4].x, 3);
  EXPECT_THAT(CheckPairs(eyes, 4).message(), HasSubstr("keypoint 4 of 4"));
  const KeypointPair itself[] = {{1, 1}};
  EXPECT_THAT(CheckPairs(itself, 4).message(), HasSubstr("keypoint 1 is in pairs twice"));
  const KeypointPair twice[] = {{0, 1}, {1, 2}};
  EXPECT_FALSE(CheckPairs(twice, 4).ok());
}

}  // namespace
}  // namespace shardpack

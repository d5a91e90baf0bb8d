// MoveObjects and ObjectBatch: what is kept, where it is, and where that of each image begins.
#include "augment/geometry/object_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace shardpack {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The left half of 100 x 100 at twice its width, mirrored.
Movement LeftHalf() {
  return {.source_width = 100,
          .source_height = 100,
          .crop = {.box = {0, 0, 50, 100}, .flip = true},
          .width = 100,
          .height = 100};
}

std::vector<ImageObject> Objects() {
  std::vector<ImageObject> objects(4);
  objects[0].box = {10, 20, 30, 40};
  objects[0].area = 300;
  objects[0].label = 3;
  objects[0].polygons = {{{12, 20}, {28, 20}, {28, 30}}};
  objects[0].keypoints = {{9.5, 19.5, 2}, {60, 50, 1}};
  objects[1].box = {70, 20, 90, 40};  // in the other half
  objects[2].box = {40, 50, 80, 60};  // a quarter is seen
  objects[2].label = 1;
  objects[2].crowd = true;
  objects[3].box = {-10, 0, 10, 10};
  objects[3].label = 7;
  return objects;
}

TEST(MoveObjects, BoxesLabelsAndWhatIsKept) {
  const auto moved = MoveObjects(Objects(), LeftHalf(), {});
  ASSERT_TRUE(moved.ok()) << moved.status();
  EXPECT_THAT(moved->boxes, ElementsAre(40, 20, 80, 40, 0, 50, 20, 60, 80, 0, 100, 10));
  EXPECT_THAT(moved->labels, ElementsAre(3, 1, 7));
  EXPECT_THAT(moved->keep, ElementsAre(0, 2, 3));
  EXPECT_THAT(moved->crowds, ElementsAre(0, 1, 0));
  EXPECT_EQ(moved->areas[0], 600);
  EXPECT_EQ(moved->dropped, 1u);
  EXPECT_EQ(moved->outside, 1u);
  EXPECT_THAT(moved->polygons, IsEmpty());
  EXPECT_THAT(moved->keypoints, IsEmpty());
}

TEST(MoveObjects, Options) {
  ObjectOptions options = {.format = BoxFormat::kXywh, .min_visible = 0.3};
  auto moved = MoveObjects(Objects(), LeftHalf(), options);
  ASSERT_TRUE(moved.ok());
  EXPECT_THAT(moved->boxes, ElementsAre(40, 20, 40, 20, 80, 0, 20, 10));
  EXPECT_EQ(moved->dropped, 2u);
  options = {.min_visible = 0.3,
             .box_from_polygon = true,
             .polygons = true,
             .keypoints = 2,
             .pairs = {{0, 1}}};
  auto objects = Objects();
  moved = MoveObjects(objects, LeftHalf(), options);
  ASSERT_TRUE(moved.ok());
  EXPECT_THAT(moved->boxes, ElementsAre(44, 20, 76, 30, 80, 0, 100, 10));
  EXPECT_THAT(moved->rings, ElementsAre(1, 0));
  EXPECT_THAT(moved->points, ElementsAre(3));
  EXPECT_THAT(moved->polygons, ElementsAre(76, 20, 44, 20, 44, 30));
  // The second is outside; mirrored, they change places.
  EXPECT_THAT(moved->keypoints, ElementsAre(0, 0, 0, 79.5, 19.5, 2, 0, 0, 0, 0, 0, 0));
  Movement upright = LeftHalf();
  upright.crop.flip = false;
  EXPECT_THAT(MoveObjects(objects, upright, options)->keypoints,
              ElementsAre(19.5, 19.5, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0));
  // A warp that mirrors swaps them too, and mirrored twice nothing is swapped.
  const Projection mirror(AffineOfFlip(upright.width));
  upright.warps = std::span(&mirror, 1);
  EXPECT_EQ(MoveObjects(objects, upright, options)->keypoints,
            MoveObjects(objects, LeftHalf(), options)->keypoints);
  objects[3].keypoints.resize(3);
  EXPECT_THAT(MoveObjects(objects, LeftHalf(), options).status().message(),
              HasSubstr("object 3 has 3 keypoints, not 2"));
}

// Of the object in the other half a line on the border is left, which a turn makes a box.
TEST(MoveObjects, AWarpBringsNothingBack) {
  Movement turned = LeftHalf();
  const Projection turn(RotationAbout({50, 50}, -25));
  turned.warps = std::span(&turn, 1);
  auto objects = Objects();
  objects[1].polygons = {{{50, 20}, {90, 20}, {50, 40}}};
  for (const bool from_polygon : {false, true}) {
    const auto moved = MoveObjects(objects, turned, {.box_from_polygon = from_polygon});
    ASSERT_TRUE(moved.ok()) << moved.status();
    EXPECT_THAT(moved->keep, ElementsAre(0, 2, 3));
    EXPECT_EQ(moved->dropped, 1u);
  }
}

TEST(CheckObjectOptions, NamesTheValue) {
  EXPECT_TRUE(CheckObjectOptions({}).ok());
  EXPECT_THAT(CheckObjectOptions({.min_visible = 1.5}).message(), HasSubstr("not 1.5"));
  EXPECT_FALSE(CheckObjectOptions({.min_visible = std::nan("")}).ok());
  EXPECT_THAT(CheckObjectOptions({.keypoints = 2000}).message(), HasSubstr("2000"));
  EXPECT_THAT(CheckObjectOptions({.keypoints = 2, .pairs = {{0, 2}}}).message(),
              HasSubstr("keypoint 2 of 2"));
}

TEST(ObjectBatch, OffsetsOfImagesObjectsAndRings) {
  ObjectBatch batch;
  const ObjectOptions options = {.polygons = true};
  batch.Add(*MoveObjects(Objects(), LeftHalf(), options));
  batch.Add({});
  batch.Add(*MoveObjects(Objects(), LeftHalf(), options));
  EXPECT_THAT(batch.offsets, ElementsAre(0, 3, 3, 6));
  EXPECT_EQ(batch.boxes.size(), 24u);
  EXPECT_THAT(batch.ring_offsets, ElementsAre(0, 1, 1, 1, 2, 2, 2));
  EXPECT_THAT(batch.point_offsets, ElementsAre(0, 3, 6));
  EXPECT_EQ(batch.polygons.size(), 12u);
  EXPECT_EQ(batch.dropped, 2u);
  EXPECT_EQ(batch.outside, 2u);
}

}  // namespace
}  // namespace shardpack

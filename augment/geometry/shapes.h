// Boxes, polygons and keypoints, and what becomes of them when an image is cropped and warped.
//
//   const Movement movement = {.source_width = 640, .source_height = 480, .crop = crop,
//                              .width = 224, .height = 224};
//   const MovedBox moved = MoveBox({10, 20, 110, 220}, movement);
//   if (IsKept(moved, /*min_visible=*/0.25)) Use(moved.box);
//
// Box: clipped to the image, then to the crop, and mapped; after each warp the hull of its mapped
// corners, clipped to the result. As torchvision's transforms of BoundingBoxes.
// Polygon: clipped in the same places (Sutherland and Hodgman), so a concave one may get edges of
// no width along the border.
// What is below a pixel before a warp is left out as it is after the last one: a rotation would
// make a box of the line on the border that remains of an object outside the crop. Keypoint: COCO's
// numbers are those of pixels, so 0.5 is added before the map and subtracted after it. One that
// lies outside the result is as if never labelled: 0, 0, 0.
//
// Lifetime: Movement borrows its warps.
// Thread-safety: pure functions.
// Errors: none but those of CheckPairs: the parser of objects (coco_objects.h) refuses what has no
// meaning.
// Units: edge coordinates, as affine.h; keypoints: numbers of pixels.
#ifndef SHARDPACK_AUGMENT_GEOMETRY_SHAPES_H_
#define SHARDPACK_AUGMENT_GEOMETRY_SHAPES_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "augment/geometry/affine.h"
#include "augment/geometry/projection.h"
#include "images/augment/crop.h"
#include "images/pixels/pixels.h"

namespace shardpack {

// What happened to an image: the crop and flip, then each warp, from the result to the result.
struct Movement {
  double source_width = 0, source_height = 0;  // as displayed
  Crop crop = {};
  double width = 0, height = 0;  // of the result
  std::span<const Projection> warps = {};

  // All of it, from the source to the result.
  Projection map() const;
};

// Left, top, right, bottom; or left, top, width, height.
enum class BoxFormat : uint8_t { kXyxy, kXywh };

struct MovedBox {
  PixelBox box;
  // Of the area that lay inside the source; after warps the product over the steps. 0 for a box
  // without area.
  double visible = 0;
  bool outside = false;  // some of it lay outside the source
  bool small = false;    // narrower or lower than a pixel, in the result or before one of the warps
};

MovedBox MoveBox(const PixelBox& box, const Movement& movement);
// Not small, and at least this share is visible.
bool IsKept(const MovedBox& moved, double min_visible);

using Ring = std::vector<Point>;

// A convex or concave polygon within the box; empty if nothing is left.
Ring Clip(std::span<const Point> ring, const PixelBox& box);
// The smallest box around all points; all zeros without a point.
PixelBox HullOf(std::span<const Ring> rings);

struct MovedRings {
  std::vector<Ring> rings;  // of which something is left
  bool small = false;       // as MovedBox: the hull of all of them
};

// Those of one object.
MovedRings MoveRings(std::span<const Ring> rings, const Movement& movement);

struct Keypoint {
  double x = 0, y = 0;
  uint8_t visibility = 0;  // COCO: 0 not labelled, 1 hidden, 2 visible

  friend bool operator==(const Keypoint&, const Keypoint&) = default;
};

// Two keypoints of which a mirrored image shows one where the other was: left and right eye.
using KeypointPair = std::pair<uint32_t, uint32_t>;

Keypoint MoveKeypoint(const Keypoint& point, const Movement& movement);
// InvalidArgument for a pair beyond `count`, of one with itself, or with one of another pair.
absl::Status CheckPairs(std::span<const KeypointPair> pairs, uint32_t count);
// After a flip; pairs pass CheckPairs.
void SwapPairs(std::span<const KeypointPair> pairs, std::span<Keypoint> points);

}  // namespace shardpack

#endif  // SHARDPACK_AUGMENT_GEOMETRY_SHAPES_H_

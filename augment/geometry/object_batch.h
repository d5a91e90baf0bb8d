// ObjectBatch: the objects of all images of a batch, moved with their crops: arrays of values, and
// where those of each image begin.
//
//   ObjectBatch batch;
//   for (slot ...) batch.Add(*MoveObjects(*ParseObjects(json), movement, options));
//   batch.boxes[4 * (batch.offsets[slot] + i)];   // the left edge of the i-th object of that slot
//
// An object whose box is below a pixel or a share of itself is left out; `keep` has the position
// that each had in its JSON.
//
// Lifetime: plain values.
// Thread-safety: MoveObjects is a pure function; a batch has one writer.
// Errors: InvalidArgument for options that cannot be (CheckObjectOptions) and for objects with
// another number of keypoints than the options say.
// Units: pixels of the result, edge coordinates; keypoints are numbers of pixels.
#ifndef SHARDPACK_AUGMENT_GEOMETRY_OBJECT_BATCH_H_
#define SHARDPACK_AUGMENT_GEOMETRY_OBJECT_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "augment/geometry/coco_objects.h"
#include "augment/geometry/shapes.h"

namespace shardpack {

struct ObjectOptions {
  BoxFormat format = BoxFormat::kXyxy;
  double min_visible = 0;  // the least share of a box that is kept, 0 to 1
  // The box is that around the moved polygons, where an object has any.
  bool box_from_polygon = false;
  bool polygons = false;                 // are given, too
  uint32_t keypoints = 0;                // of each object; 0: none are given
  std::vector<KeypointPair> pairs = {};  // swap places in a mirrored image
};

absl::Status CheckObjectOptions(const ObjectOptions& options);

// Those of one image.
struct MovedObjects {
  std::vector<float> boxes;      // four each
  std::vector<float> areas;      // of the object in the source, scaled as its place is
  std::vector<int64_t> labels;   // -1: none
  std::vector<uint8_t> crowds;   // 1: a group that was not told apart
  std::vector<uint32_t> keep;    // position in the JSON
  std::vector<float> keypoints;  // options.keypoints x 3 each
  std::vector<uint32_t> rings;   // how many rings each object has
  std::vector<uint32_t> points;  // how many points each ring has
  std::vector<float> polygons;   // two each point
  uint32_t dropped = 0;          // too small, or not visible enough
  uint32_t outside = 0;          // boxes beyond the source, which were clipped to it
};

absl::StatusOr<MovedObjects> MoveObjects(std::span<const ImageObject> objects,
                                         const Movement& movement, const ObjectOptions& options);

struct ObjectBatch {
  std::vector<int64_t> offsets = {0};  // slots + 1
  std::vector<float> boxes, areas;
  std::vector<int64_t> labels;
  std::vector<uint8_t> crowds;
  std::vector<uint32_t> keep;
  std::vector<float> keypoints;
  std::vector<int64_t> ring_offsets = {0};   // objects + 1
  std::vector<int64_t> point_offsets = {0};  // rings + 1
  std::vector<float> polygons;
  uint64_t dropped = 0, outside = 0;
  uint32_t keypoints_each = 0;

  void Add(const MovedObjects& more);
};

}  // namespace shardpack

#endif  // SHARDPACK_AUGMENT_GEOMETRY_OBJECT_BATCH_H_

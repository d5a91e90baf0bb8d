// ParseObjects: the objects of one image, of the JSON that is packed with it.
//
//   absl::StatusOr<std::vector<ImageObject>> objects = ParseObjects(json);
//   for (const ImageObject& object : *objects) Use(object.box, object.label);
//
// Three forms: what `pack` makes of COCO json ({"annotations":[...],"boxes":[...],...}, or without
// annotations), COCO's {"annotations":[...]}, and a list of COCO's annotations. Labels are those of
// `boxes`, the classes of the dataset; without `boxes` COCO's category_id. Polygons, run lengths
// and keypoints are those of the annotations: the n-th box belongs to the n-th annotation that is
// no caption. An annotation beyond the boxes comes from a further file; if its id is that of one
// before, its polygons, run lengths or keypoints complete that one.
//
// Lifetime: nothing is borrowed.
// Thread-safety: a pure function.
// Errors: InvalidArgument that names the object by its position, and what is wrong: JSON that is
// damaged or not a list of objects, boxes that are not four finite numbers or of negative size,
// labels that are not whole numbers, an iscrowd that is not 0 or 1, odd polygons, more than
// kMaxObjects.
// Units: pixels of the image as displayed; COCO's boxes are left, top, width, height.
#ifndef SHARDPACK_AUGMENT_GEOMETRY_COCO_OBJECTS_H_
#define SHARDPACK_AUGMENT_GEOMETRY_COCO_OBJECTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "augment/geometry/run_lengths.h"
#include "augment/geometry/shapes.h"

namespace shardpack {

inline constexpr size_t kMaxObjects = 65'535;

struct ImageObject {
  PixelBox box;
  double area = 0;  // of the box if the JSON has none
  int64_t label = -1;
  bool crowd = false;
  bool outlined = false;  // by polygons of three points or more, or by run lengths
  std::vector<Ring> polygons;
  std::optional<RunLengths> mask;
  std::vector<Keypoint> keypoints;
};

// Of the image that the coordinates are of: width and height of the member `image` that `pack`
// writes. 0: not said.
struct AnnotatedSize {
  double width = 0, height = 0;
};

absl::StatusOr<std::vector<ImageObject>> ParseObjects(std::string_view json,
                                                      AnnotatedSize* size = nullptr);

}  // namespace shardpack

#endif  // SHARDPACK_AUGMENT_GEOMETRY_COCO_OBJECTS_H_

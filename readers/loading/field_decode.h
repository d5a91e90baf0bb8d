// FieldDecode: what a loader makes of a field beside the image: a further image, a label map, or
// objects, which move with the image's crop.
//
//   options.decode_fields = {{.field = "mask.png", .labels = {.classes = 21}},
//                            {.field = "right.jpg", .as = FieldAs::kImage},
//                            {.field = "json", .as = FieldAs::kCoco}};  // or kCocoLabels
//   loader->Next() ... batch.decoded_fields()[0].bytes, batch.objects()->boxes
//
// A further image is decoded with the options of the image. It and a label map have the image's
// shape, at any scale.
//
// Lifetime: plain values.
// Thread-safety: as any plain value.
// Errors: CheckFieldDecodes: InvalidArgument that names the field.
#ifndef SHARDPACK_READERS_LOADING_FIELD_DECODE_H_
#define SHARDPACK_READERS_LOADING_FIELD_DECODE_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "augment/geometry/object_batch.h"
#include "augment/geometry/object_labels.h"
#include "images/augment/label_pipeline.h"
#include "images/augment/pixel_pipeline.h"

namespace shardpack {

enum class FieldAs : uint8_t {
  kImage,   // pixels of the image's type; a sample without the field is a bad one
  kLabels,  // images/augment/label_pipeline.h; `ignore` where a sample has no such field
  kCoco,    // augment/geometry/coco_objects.h; no objects where a sample has no such field
  // augment/geometry/object_labels.h; `ignore` where a sample has no such field
  kCocoLabels,
};

// What a field has in common with the image.
enum class Share : uint8_t {
  kAll,       // crop, flip and what changes colours: both images of a stereo pair
  kGeometry,  // crop and flip: another spectrum, another exposure
  kNone,  // crop and flip are drawn separately, from random numbers that belong to the field's name
};

struct FieldDecode {
  std::string field;
  FieldAs as = FieldAs::kLabels;
  Share share = Share::kAll;
  LabelMapOptions labels = {};         // for kLabels and kCocoLabels
  ObjectOptions objects = {};          // for kCoco
  Overlap overlap = Overlap::kIgnore;  // for kCocoLabels
};

// `image`: the options of the image's decoding. At most one field holds objects.
absl::Status CheckFieldDecodes(std::span<const FieldDecode> fields,
                               const PixelPipelineOptions& image);

}  // namespace shardpack

#endif  // SHARDPACK_READERS_LOADING_FIELD_DECODE_H_

// SharedCrop: the crop of one image for another of the same scene: a label map, the right image of
// a pair.
//
//   absl::StatusOr<Crop> crop = SharedCrop(chosen, 640, 480, 320, 240);  // half of each edge
//
// The other image shows the same, so it has the same ratio of width and height: each side is the
// scaled one of the image, give or take less than a pixel.
//
// Lifetime: plain values.
// Thread-safety: a pure function.
// Errors: InvalidArgument, naming both sizes, for another ratio.
// Units: pixels of the images as displayed.
#ifndef SHARDPACK_IMAGES_AUGMENT_SHARED_CROP_H_
#define SHARDPACK_IMAGES_AUGMENT_SHARED_CROP_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "images/augment/crop.h"

namespace shardpack {

absl::StatusOr<Crop> SharedCrop(const Crop& crop, uint32_t width, uint32_t height,
                                uint32_t other_width, uint32_t other_height);

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_AUGMENT_SHARED_CROP_H_

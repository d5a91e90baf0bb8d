// Crop: which part of an image becomes a sample, and whether it is mirrored.
//
//   const CropOptions options{.kind = CropKind::kRandomResized, .width = 224, .height = 224,
//                             .flip_probability = 0.5};
//   const Crop crop = ChooseCrop(options, info.width, info.height, {seed, epoch, id});
//
// A pure function of its arguments: no generator is advanced, so a sample looks the same on any
// rank, thread and processor, whatever came before it. Random numbers are derived from (seed,
// epoch, id) in integer arithmetic; even the exponential of the aspect ratio is computed in
// integers.
//   kRandomResized  torchvision's RandomResizedCrop: ten tries, then the largest centered part with
//                   an allowed ratio; whole pixels.
//   kCenter         torchvision's Resize(shortest) and CenterCrop in one step: a box with edges
//                   that may lie within pixels; the filter also uses pixels around it.
//   kResize         the whole image, whatever its aspect ratio.
//
// Lifetime: plain values.
// Thread-safety: pure functions.
// Errors: InvalidArgument (CheckCropOptions); ChooseCrop requires options that pass it, and an
// image of at least one pixel.
// Units: pixels of the image as displayed (after the EXIF orientation).
#ifndef SHARDPACK_IMAGES_AUGMENT_CROP_H_
#define SHARDPACK_IMAGES_AUGMENT_CROP_H_

#include <cstdint>

#include "absl/status/status.h"
#include "images/augment/random_numbers.h"
#include "images/pixels/pixels.h"

namespace shardpack {

enum class CropKind : uint8_t { kRandomResized, kCenter, kResize };

struct CropOptions {
  CropKind kind = CropKind::kRandomResized;
  uint32_t width = 224, height = 224;  // of the result
  // kRandomResized: the ranges of the crop's share of the area, and of its width / height.
  double min_scale = 0.08, max_scale = 1;
  double min_ratio = 3.0 / 4, max_ratio = 4.0 / 3;
  // kCenter: the shorter side is resized to this; at least width and height.
  uint32_t shortest_side = 256;
  double flip_probability = 0;  // of mirroring left to right
};

struct Crop {
  PixelBox box;
  // The filter also uses pixels around the box: resize first, then crop.
  bool margin = false;
  bool flip = false;

  friend bool operator==(const Crop&, const Crop&) = default;
};

// kCenter: the size to which an image is resized, and where the part begins in that.
struct CenterPart {
  uint64_t resized_width = 0, resized_height = 0;
  double left = 0, top = 0;  // whole numbers
};

absl::Status CheckCropOptions(const CropOptions& options);
Crop ChooseCrop(const CropOptions& options, uint32_t width, uint32_t height,
                const SampleIdentity& sample);

CenterPart ChooseCenter(const CropOptions& options, uint32_t width, uint32_t height);

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_AUGMENT_CROP_H_

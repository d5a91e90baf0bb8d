// Crop: which part of an image becomes a sample, and whether it is mirrored.
//
//   const CropOptions options{.kind = CropKind::kRandomResized, .width = 224, .height = 224,
//                             .flip_probability = 0.5};
//   const Crop crop = ChooseCrop(options, info.width, info.height, {seed, epoch, id});
//
// A pure function of its arguments: no generator is advanced, so a sample looks the same whatever
// came before it, on any rank, thread and processor. Random numbers are mixed from (seed, epoch,
// id) by integer arithmetic, and the exponential of the aspect ratio is computed in integers too.
//   kRandomResized  torchvision's RandomResizedCrop: ten tries, then the largest centered part with
//                   an allowed ratio; whole pixels.
//   kCenter         torchvision's Resize(shortest) and CenterCrop in one step: a box with edges
//                   within pixels, around which the filter takes part.
//   kResize         the whole image, whatever its ratio.
//
// Lifetime, thread-safety: plain values, pure functions.
// Errors: InvalidArgument (CheckCropOptions); ChooseCrop needs options that pass it, and an image
// of at least one pixel.
// Units: pixels of the image as it is seen (after the EXIF orientation).
#ifndef SHARDPACK_IMAGES_AUGMENT_CROP_H_
#define SHARDPACK_IMAGES_AUGMENT_CROP_H_

#include <cstdint>

#include "absl/status/status.h"
#include "images/pixels/pixels.h"

namespace shardpack {

enum class CropKind : uint8_t { kRandomResized, kCenter, kResize };

struct CropOptions {
  CropKind kind = CropKind::kRandomResized;
  uint32_t width = 224, height = 224;  // of the result
  // kRandomResized: parts of the area, and of width / height.
  double min_scale = 0.08, max_scale = 1;
  double min_ratio = 3.0 / 4, max_ratio = 4.0 / 3;
  // kCenter: what the shorter side is resized to; at least width and height.
  uint32_t shortest_side = 256;
  double flip_probability = 0;  // of a mirror image, left to right
};

// What the random numbers of a sample are made of.
struct SampleIdentity {
  uint64_t seed = 0, epoch = 0, id = 0;
};

struct Crop {
  PixelBox box;
  // Pixels around the box take part where the filter reaches them: resize first, then cut.
  bool margin = false;
  bool flip = false;

  friend bool operator==(const Crop&, const Crop&) = default;
};

absl::Status CheckCropOptions(const CropOptions& options);
Crop ChooseCrop(const CropOptions& options, uint32_t width, uint32_t height,
                const SampleIdentity& sample);

// The n-th random number of a sample, all 64 bits: SplitMix64's finalizer over a mix of the three.
uint64_t SampleRandom(const SampleIdentity& sample, uint64_t n);

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_AUGMENT_CROP_H_

// ImageTransform: an encoded image to another encoded image, as TransformOptions say, or to itself.
//
//   absl::StatusOr<ImageTransform> transform = ImageTransform::Create({.encode = EncodeAs::kPng});
//   TransformScratch scratch;   // one a thread
//   absl::StatusOr<TransformedImage> image = transform->Run(file_bytes, info, scratch);
//
// An image in which the options have nothing to change is given back byte for byte. Every other one
// is decoded, turned upright, converted, resized and encoded anew; then nothing of its metadata is
// kept but what is asked for (orientation, colour profile). Order of work: CMYK to RGB, alpha
// blended away, resize, colour profile, gray, bars, encode. Of an animation the first frame is
// taken.
//
// Lifetime: a result borrows from the scratch until its next run, or from the file.
// Thread-safety: const calls from any thread, each with its own scratch. The result depends on
// options and bytes alone.
// Errors: those of ImageDecoder and ImageEncoder; never an image with a gray rest.
// Units: pixels; bytes in names.
#ifndef SHARDPACK_IMAGES_TRANSFORM_TRANSFORM_H_
#define SHARDPACK_IMAGES_TRANSFORM_TRANSFORM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "formats/core/image_info.h"
#include "images/codecs/decode.h"
#include "images/codecs/encode.h"
#include "images/pixels/pixels.h"
#include "images/resize/resize.h"
#include "images/transform/color_profile.h"
#include "images/transform/transform_options.h"
#include "images/transform/transform_target.h"

namespace shardpack {

// What was changed in an image, as bits.
enum PixelChange : uint16_t {
  kResized = 1,
  kOtherFormat = 2,
  kOtherColor = 4,  // gray to RGB or back, or from a palette or CMYK
  kOtherDepth = 8,
  kAlphaRemoved = 16,
  kTurnedUpright = 32,
  kProfileApplied = 64,
  kFirstFrame = 128,  // what was an animation, or had several pages
  // No change: the profile is none that can be used, or of another color model, and the pixels are
  // what they were. Alone, the image stays as it is.
  kProfileIgnored = 256,
};
inline constexpr std::array<std::string_view, 9> kPixelChangeNames = {
    "resized",     "format", "color",       "depth",      "alpha",
    "orientation", "icc",    "first-frame", "icc-ignored"};
// False when the image stays byte for byte what it is.
constexpr bool ChangesPixels(uint16_t changes) { return (changes & ~kProfileIgnored) != 0; }

struct TransformedImage {
  std::span<const std::byte> bytes;
  ImageInfo info;
  uint16_t changes = 0;  // sum of PixelChange; not ChangesPixels: `bytes` are those of the file
};

struct TransformLimits {
  uint64_t max_pixels = DecodeOptions().max_pixels;
  uint32_t max_scans = DecodeOptions().max_scans;
};

class TransformScratch {
 public:
  // Gives back what a large image took.
  void Trim();
  // For what else its thread has to decode; ends what the last run has given.
  ImageDecoder& decoder() { return decoder_; }

 private:
  friend class TransformRun;
  ImageDecoder decoder_;
  Resizer resizer_;
  ImageEncoder encoder_;
  ColorConverter converter_;
  PixelBuffer opaque_, resized_, converted_, recolored_, padded_;
};

// What an image shall become, decided from its headers.
using TransformTarget = transform_internal::Target;

class ImageTransform {
 public:
  static absl::StatusOr<ImageTransform> Create(const TransformOptions& options,
                                               const TransformLimits& limits = {});

  const TransformOptions& options() const { return options_; }
  // `info` is what ProbeImage says of these bytes.
  TransformTarget Decide(std::span<const std::byte> file, const ImageInfo& info) const;
  // What Run may take beside the file and the result, about. 0 when the image stays as it is.
  static uint64_t WorkingBytes(const ImageInfo& info, const TransformTarget& target);
  // `target` is what Decide says of these bytes.
  absl::StatusOr<TransformedImage> Run(std::span<const std::byte> file, const ImageInfo& info,
                                       const TransformTarget& target,
                                       TransformScratch& scratch) const;
  absl::StatusOr<TransformedImage> Run(std::span<const std::byte> file, const ImageInfo& info,
                                       TransformScratch& scratch) const {
    return Run(file, info, Decide(file, info), scratch);
  }

 private:
  friend class TransformRun;
  ImageTransform(const TransformOptions& options, const TransformLimits& limits)
      : options_(options), limits_(limits) {}

  TransformOptions options_;
  TransformLimits limits_;
};

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_TRANSFORM_TRANSFORM_H_

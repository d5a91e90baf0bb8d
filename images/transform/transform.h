// ImageTransform: applies TransformOptions to an encoded image; returns it unchanged if nothing
// applies.
//
//   absl::StatusOr<ImageTransform> transform = ImageTransform::Create({.encode = EncodeAs::kPng});
//   TransformScratch scratch;   // one per thread
//   absl::StatusOr<TransformedImage> image = transform->Run(file_bytes, info, scratch);
//
// An image that the options do not affect is returned byte for byte. Any other image is decoded,
// turned upright, converted, resized and re-encoded, keeping only the requested metadata
// (orientation, colour profile). Order of steps: CMYK to RGB, alpha blending, resize, colour
// profile, gray, bars, encode. Only the first frame of an animation is used.
//
// Lifetime: a result borrows from the file or, until its next run, from the scratch.
// Thread-safety: const calls from any thread, each with its own scratch. The result depends only on
// options and bytes.
// Errors: those of ImageDecoder and ImageEncoder; never a partially decoded image.
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

// Bit flags for what was changed in an image.
enum PixelChange : uint16_t {
  kResized = 1,
  kOtherFormat = 2,
  kOtherColor = 4,  // gray to RGB or back, or from a palette or CMYK
  kOtherDepth = 8,
  kAlphaRemoved = 16,
  kTurnedUpright = 32,
  kProfileApplied = 64,
  kFirstFrame = 128,  // was an animation, or had several pages
  // Not a change: the profile is unusable or of another color model, and the pixels are
  // unconverted. If this is the only flag, the image stays as it is.
  kProfileIgnored = 256,
};
inline constexpr std::array<std::string_view, 9> kPixelChangeNames = {
    "resized",     "format", "color",       "depth",      "alpha",
    "orientation", "icc",    "first-frame", "icc-ignored"};
// False if the image stays byte for byte the same.
constexpr bool ChangesPixels(uint16_t changes) { return (changes & ~kProfileIgnored) != 0; }

struct TransformedImage {
  std::span<const std::byte> bytes;
  ImageInfo info;
  uint16_t changes = 0;  // sum of PixelChange; unless ChangesPixels, `bytes` are those of the file
};

struct TransformLimits {
  uint64_t max_pixels = DecodeOptions().max_pixels;
  uint32_t max_scans = DecodeOptions().max_scans;
};

class TransformScratch {
 public:
  // Frees the memory that a large image needed.
  void Trim();
  // For other decoding on the same thread; invalidates the last result.
  ImageDecoder& decoder() { return decoder_; }

 private:
  friend class TransformRun;
  ImageDecoder decoder_;
  Resizer resizer_;
  ImageEncoder encoder_;
  ColorConverter converter_;
  PixelBuffer opaque_, resized_, converted_, recolored_, padded_;
};

// What to do with an image, decided from its headers.
using TransformTarget = transform_internal::Target;

class ImageTransform {
 public:
  static absl::StatusOr<ImageTransform> Create(const TransformOptions& options,
                                               const TransformLimits& limits = {});

  const TransformOptions& options() const { return options_; }
  // `info` is the result of ProbeImage for these bytes.
  TransformTarget Decide(std::span<const std::byte> file, const ImageInfo& info) const;
  // Approximate memory that Run needs besides file and result. 0 if the image stays as it is.
  static uint64_t WorkingBytes(const ImageInfo& info, const TransformTarget& target);
  // `target` is the result of Decide for these bytes.
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

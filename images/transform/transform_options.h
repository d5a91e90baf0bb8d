// TransformOptions: how to change an image's pixels, as plain values with one canonical text.
//
//   TransformOptions options{.resize = ResizeMode::kShortest, .width = 256, .height = 256};
//   if (auto status = CheckTransformOptions(options); !status.ok()) return status;
//   const ResizePlan plan = PlanResize(options, 500, 375);   // 341 x 256
//
// The default options are the identity: bytes are unchanged. For options of codecs and policies,
// kAuto never causes a change by itself; an image that is re-encoded for another reason gets the
// usual treatment (turned upright, sRGB, alpha kept if the format supports it, otherwise blended
// onto white).
//
// Errors: InvalidArgument for contradictory options, worded in terms of the command line.
// Units: pixels of the image as displayed.
#ifndef SHARDPACK_IMAGES_TRANSFORM_TRANSFORM_OPTIONS_H_
#define SHARDPACK_IMAGES_TRANSFORM_TRANSFORM_OPTIONS_H_

#include <array>
#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "absl/status/status.h"
#include "images/pixels/pixels.h"
#include "images/resize/resize_weights.h"

namespace shardpack {

// Values are stored in plan files: never renumber, only append.
enum class ResizeMode : uint8_t {
  kOff,
  kShortest,  // the shorter side becomes `width`, the other is scaled with it
  kLongest,   // the longer side becomes `width`, the other is scaled with it
  kExact,     // width x height, whatever the aspect ratio
  kCrop,      // covers width x height; the excess on both sides is cropped
  kPad,       // fits into width x height, with black bars
};
// Antialiased like Pillow's; kArea is its BOX. kAuto: bilinear, or bicubic when enlarging.
enum class Interpolation : uint8_t { kAuto, kArea, kBilinear, kBicubic, kLanczos };
enum class EncodeAs : uint8_t { kKeep, kJpeg, kPng, kWebp, kRaw };
enum class ColorChange : uint8_t { kKeep, kRgb, kGray };
enum class AlphaChange : uint8_t { kAuto, kKeep, kDrop, kBlend };
enum class OrientChange : uint8_t { kAuto, kBake, kKeep };
enum class ProfileChange : uint8_t { kAuto, kSrgb, kKeep };

constexpr auto WordsOf(ResizeMode) {
  return std::to_array<std::string_view>({"off", "shortest", "longest", "exact", "crop", "pad"});
}
constexpr auto WordsOf(Interpolation) {
  return std::to_array<std::string_view>({"auto", "area", "bilinear", "bicubic", "lanczos"});
}
constexpr auto WordsOf(EncodeAs) {
  return std::to_array<std::string_view>({"keep", "jpg", "png", "webp", "raw"});
}
constexpr auto WordsOf(ColorChange) {
  return std::to_array<std::string_view>({"keep", "rgb", "gray"});
}
constexpr auto WordsOf(AlphaChange) {
  return std::to_array<std::string_view>({"auto", "keep", "drop", "blend"});
}
constexpr auto WordsOf(OrientChange) {
  return std::to_array<std::string_view>({"auto", "bake", "keep"});
}
constexpr auto WordsOf(ProfileChange) {
  return std::to_array<std::string_view>({"auto", "srgb", "keep"});
}

struct TransformOptions {
  static constexpr uint8_t kDefaultQuality = 95;

  ResizeMode resize = ResizeMode::kOff;
  uint32_t width = 0, height = 0;  // kShortest and kLongest: the same number
  bool only_if_bigger = false;     // never enlarge
  Interpolation interpolation = Interpolation::kAuto;
  bool exact = false;  // decode JPEGs at full scale even if less would do
  EncodeAs encode = EncodeAs::kKeep;
  uint8_t quality = kDefaultQuality;  // for JPEG and lossy WebP
  ColorChange color = ColorChange::kKeep;
  bool depth8 = false;
  AlphaChange alpha = AlphaChange::kAuto;
  uint32_t background = 0xFFFFFF;  // red, green, blue: for kBlend, and where alpha must be removed
  OrientChange orient = OrientChange::kAuto;
  ProfileChange profile = ProfileChange::kAuto;

  // Whether the options change no image at all.
  bool identity() const;
  // Command line option -> canonical value; empty for the identity. Includes the versions of the
  // libraries that determine the bytes.
  std::map<std::string, std::string> ToMap() const;

  friend bool operator==(const TransformOptions&, const TransformOptions&) = default;
};

// The only list of the options, in the order of plan files (see VisitMembers of PlanOptions).
template <typename Self, typename Visitor>
requires std::same_as<std::remove_const_t<Self>, TransformOptions>
void VisitMembers(Self& options, Visitor& visitor) {
  const bool resized = options.resize != ResizeMode::kOff;
  visitor.Option("resize", options.resize);
  visitor.Part(options.width);
  visitor.Part(options.height);
  visitor.Option("only-if-bigger", options.only_if_bigger, resized);
  visitor.Option("interpolation", options.interpolation, resized);
  visitor.Option("exact", options.exact, resized);
  visitor.Option("encode", options.encode);
  visitor.Option("quality", options.quality);
  visitor.Option("color", options.color);
  visitor.Part(options.depth8);
  visitor.Part(options.alpha);
  visitor.Part(options.background);
  visitor.Option("orient", options.orient);
  visitor.Option("icc", options.profile);
}

absl::Status CheckTransformOptions(const TransformOptions& options);

// The common size of all resulting images, if the options alone determine it.
struct FixedShape {
  uint32_t width = 0, height = 0, channels = 0;  // 8 bits per channel

  uint64_t bytes() const { return uint64_t{width} * height * channels; }
  friend bool operator==(const FixedShape&, const FixedShape&) = default;
};
// nullopt unless pixels are stored raw with one size and number of channels: resized to exact, crop
// or pad, with --color rgb or gray and without alpha.
std::optional<FixedShape> RawShape(const TransformOptions& options);

// How to resize an image of a given size.
struct ResizePlan {
  PixelBox box;                            // the part of the source that is resized
  uint32_t width = 0, height = 0;          // of the resized box
  uint32_t out_width = 0, out_height = 0;  // including the bars of kPad
  uint32_t left = 0, top = 0;              // position of the resized box in the result
  ResizeFilter filter = ResizeFilter::kBilinear;
  // The pixels are unchanged.
  bool same = false;
  // A side would be longer than kMaxResize, and 65,536 stands for its length: no image is made.
  bool too_large() const { return width > kMaxResize || height > kMaxResize; }
};
ResizePlan PlanResize(const TransformOptions& options, uint32_t width, uint32_t height);

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_TRANSFORM_TRANSFORM_OPTIONS_H_

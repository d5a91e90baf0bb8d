#include "images/transform/transform_target.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "images/pixels/orientation.h"
#include "images/probe/icc_profile.h"
#include "images/resize/resize_wide.h"
#include "images/transform/transform.h"

namespace shardpack::transform_internal {
namespace {

ImageFormat FormatOf(EncodeAs encode, ImageFormat source) {
  switch (encode) {
    case EncodeAs::kJpeg:
      return ImageFormat::kJpeg;
    case EncodeAs::kPng:
      return ImageFormat::kPng;
    case EncodeAs::kWebp:
      return ImageFormat::kWebp;
    case EncodeAs::kRaw:
      return ImageFormat::kRaw;
    case EncodeAs::kKeep:
      break;
  }
  const bool written = source == ImageFormat::kJpeg || source == ImageFormat::kPng ||
                       source == ImageFormat::kWebp || source == ImageFormat::kRaw;
  return written ? source : ImageFormat::kPng;
}

bool IsGray(const ImageInfo& info) {
  return info.color_space == ColorSpace::kGray || info.color_space == ColorSpace::kGrayAlpha;
}

bool IsRgb(const ImageInfo& info) {
  return info.color_space == ColorSpace::kRgb || info.color_space == ColorSpace::kRgba;
}

// Whether a WebP file is lossless: its first chunk of pixels is "VP8L" (RFC 9649, section 2.6).
bool IsLosslessWebp(std::span<const std::byte> file) {
  size_t at = 12;
  while (file.size() >= 8 && at <= file.size() - 8) {
    const auto* chunk = reinterpret_cast<const unsigned char*>(file.data()) + at;
    if (std::memcmp(chunk, "VP8L", 4) == 0) return true;
    if (std::memcmp(chunk, "VP8 ", 4) == 0) return false;
    const uint64_t size_bytes =
        chunk[4] | uint32_t{chunk[5]} << 8 | uint32_t{chunk[6]} << 16 | uint32_t{chunk[7]} << 24;
    // A frame's chunks are inside it.
    at += std::memcmp(chunk, "ANMF", 4) == 0 ? 24 : 8 + size_bytes + size_bytes % 2;
  }
  return false;
}

// The model that a profile must have to match the image.
ProfileModel ModelOf(const ImageInfo& info) {
  switch (info.color_space) {
    case ColorSpace::kGray:
    case ColorSpace::kGrayAlpha:
      return ProfileModel::kGray;
    case ColorSpace::kRgb:
    case ColorSpace::kRgba:
    case ColorSpace::kPalette:
      return ProfileModel::kRgb;
    case ColorSpace::kCmyk:
    case ColorSpace::kYcck:
      // For formats other than JPEG, the decoder has already converted to RGB.
      return info.format == ImageFormat::kJpeg ? ProfileModel::kCmyk : ProfileModel::kNone;
    case ColorSpace::kUnknown:
      break;
  }
  return ProfileModel::kNone;
}

// Finds the profile and decides what to do with it: a change, or nothing.
uint16_t DecideProfile(const TransformOptions& options, std::span<const std::byte> file,
                       const ImageInfo& info, Target* target) {
  target->profile = FindIccProfile(file, info.format);
  if (target->profile.empty()) return 0;
  const ProfileModel fits = ModelOf(info), model = ProfileModelOf(target->profile);
  // The profile cannot apply to pixels that the decoder converted from CMYK.
  if (model == ProfileModel::kUnusable || (model != ProfileModel::kNone && model != fits)) {
    return kProfileIgnored;
  }
  const bool ink = fits == ProfileModel::kCmyk;
  target->embed = options.profile == ProfileChange::kKeep && !ink;
  // The result is never CMYK, so its profile cannot be kept.
  if (model == fits && (ink || options.profile != ProfileChange::kKeep)) target->model = model;
  return target->model == ProfileModel::kNone ? 0 : kProfileApplied;
}

// Weights and rows of the resize, at most: those of floating point are four times the others.
uint64_t ResizeBytes(const ImageInfo& info, const Target& target) {
  const ResizePlan& plan = target.resize;
  PixelView shown = {.width = info.width, .height = info.height};
  if (target.bake && OrientationOf(info.orientation).transpose) {
    std::swap(shown.width, shown.height);
  }
  if (plan.width == shown.width && plan.height == shown.height) return 0;
  const bool floats = target.wide || target.alpha || target.blend;
  shown.channels = 4;
  return ResizeWideBytes(shown, plan.box, plan.width, plan.height, plan.filter) / (floats ? 1 : 4);
}

}  // namespace

Target DecideTarget(const TransformOptions& options, std::span<const std::byte> file,
                    const ImageInfo& info) {
  Target target;
  uint16_t asked = 0, along = 0;  // requested; side effects of another change
  const auto mark = [](bool holds, uint16_t change, uint16_t* into) {
    if (holds) *into = static_cast<uint16_t>(*into | change);
  };
  target.bake = options.orient != OrientChange::kKeep;
  target.orientation = target.bake ? 1 : info.orientation;
  mark(options.orient == OrientChange::kBake && info.orientation > 1, kTurnedUpright, &asked);
  mark(target.bake && info.orientation > 1, kTurnedUpright, &along);

  uint32_t width = info.width, height = info.height;
  if (target.bake && OrientationOf(info.orientation).transpose) std::swap(width, height);
  target.resize = PlanResize(options, width, height);
  mark(!target.resize.same, kResized, &asked);

  target.format = FormatOf(options.encode, info.format);
  target.lossless = info.format == ImageFormat::kWebp && target.format == ImageFormat::kWebp &&
                    IsLosslessWebp(file);
  mark(options.encode != EncodeAs::kKeep && target.format != info.format, kOtherFormat, &asked);
  mark(target.format != info.format, kOtherFormat, &along);

  const bool gray = IsGray(info);
  target.colors = options.color == ColorChange::kGray  ? 1
                  : options.color == ColorChange::kRgb ? 3
                                                       : (gray ? 1 : 3);
  mark((options.color == ColorChange::kGray && !gray) ||
           (options.color == ColorChange::kRgb && !IsRgb(info)),
       kOtherColor, &asked);
  mark(target.colors == 3 && !IsRgb(info), kOtherColor, &along);

  target.wide = info.bits_per_channel == 16 && info.format == ImageFormat::kPng &&
                target.format == ImageFormat::kPng && !options.depth8;
  mark(options.depth8 && info.bits_per_channel != 8, kOtherDepth, &asked);
  mark(info.bits_per_channel != 8 && !target.wide, kOtherDepth, &along);

  const bool holds_alpha =
      target.format == ImageFormat::kPng || target.format == ImageFormat::kWebp;
  const bool keeps_alpha =
      options.alpha == AlphaChange::kKeep || (options.alpha == AlphaChange::kAuto && holds_alpha);
  target.alpha = info.alpha() && keeps_alpha && target.format != ImageFormat::kJpeg;
  target.blend = info.alpha() && !target.alpha && options.alpha != AlphaChange::kDrop;
  const bool named = options.alpha == AlphaChange::kDrop || options.alpha == AlphaChange::kBlend;
  mark(info.alpha() && named, kAlphaRemoved, &asked);
  mark(info.alpha() && !target.alpha, kAlphaRemoved, &along);

  mark(info.animated(), kFirstFrame, &along);
  // Only looked for if it matters.
  if (asked != 0 || options.profile == ProfileChange::kSrgb) {
    const uint16_t change = DecideProfile(options, file, info, &target);
    mark(options.profile == ProfileChange::kSrgb && change == kProfileApplied, change, &asked);
    along = static_cast<uint16_t>(along | change);
  }
  target.asked = asked;
  target.changes = static_cast<uint16_t>(asked == 0 ? along & kProfileIgnored : asked | along);
  return target;
}

Target WithoutProfile(Target target) {
  target.profile.clear();
  target.model = ProfileModel::kNone;
  target.embed = false;
  target.asked = static_cast<uint16_t>(target.asked & ~kProfileApplied);
  const uint16_t others = target.asked == 0 ? 0 : target.changes & ~kProfileApplied;
  target.changes = static_cast<uint16_t>(others | kProfileIgnored);
  return target;
}

uint64_t WorkingBytes(const ImageInfo& info, const Target& target) {
  if (target.resize.too_large()) return 0;  // is refused
  const uint64_t pixels = uint64_t{info.width} * info.height;
  const uint64_t sample_bytes = target.wide ? 2 : 1;
  // The decoder's rows, including what it reads before conversion to gray.
  uint64_t pixel_bytes = (target.alpha || target.blend ? 4 : 3) * sample_bytes;
  if (info.format == ImageFormat::kTiff || info.format == ImageFormat::kJpeg) pixel_bytes = 4;
  // 16-bit coefficients of three components; libwebp's own planes; libtiff's strip.
  if (info.format == ImageFormat::kJpeg && info.progressive()) pixel_bytes += 6;
  if (info.format == ImageFormat::kWebp || info.format == ImageFormat::kTiff) pixel_bytes += 4;
  if (target.blend || (target.bake && info.orientation > 1)) pixel_bytes += 4 * sample_bytes;
  const uint64_t out_pixels = uint64_t{target.resize.out_width} * target.resize.out_height;
  // Resized, converted, with bars, and the encoded file.
  if (target.model == ProfileModel::kCmyk) pixel_bytes += 3;
  return pixels * pixel_bytes + out_pixels * 4 * sample_bytes * 4 + ResizeBytes(info, target);
}

ImageInfo RawInfo(const Target& target) {
  static constexpr ColorSpace kSpaces[] = {ColorSpace::kGray, ColorSpace::kGrayAlpha,
                                           ColorSpace::kRgb, ColorSpace::kRgba};
  ImageInfo info;
  info.width = target.resize.out_width;
  info.height = target.resize.out_height;
  info.format = ImageFormat::kRaw;
  info.channels = static_cast<uint8_t>(target.colors + (target.alpha ? 1 : 0));
  info.color_space = kSpaces[info.channels - 1];
  info.bits_per_channel = 8;
  info.flags = target.alpha ? ImageInfo::kAlpha : 0;
  return info;
}

}  // namespace shardpack::transform_internal

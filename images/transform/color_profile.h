// ColorConverter: converts pixels from an ICC profile to sRGB with Little CMS.
//
//   if (ProfileModelOf(profile) == ProfileModel::kRgb) {
//     absl::Status status = converter.ToSrgb(profile, ProfileModel::kRgb, view, out);
//
// Perceptual intent, no black point compensation, 8 or 16 bits, alpha unchanged, like Pillow's
// ImageCms.profileToProfile. Gray stays gray, with the tone curve of sRGB. CMYK is interpreted as
// Adobe stores it in JPEGs (inverted) and becomes RGB.
//
// Lifetime: nothing is borrowed after a call.
// Thread-safety: one thread at a time; the converter caches the tables of the last few profiles.
// Errors: InvalidArgument for a profile that Little CMS rejects, or one of another model.
// Units: rows of the result without gaps; `out` may be the view's own pixels if they have no gaps,
// except for CMYK.
#ifndef SHARDPACK_IMAGES_TRANSFORM_COLOR_PROFILE_H_
#define SHARDPACK_IMAGES_TRANSFORM_COLOR_PROFILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "images/pixels/pixels.h"

namespace shardpack {

enum class ProfileModel : uint8_t {
  kNone,  // no profile, or sRGB itself
  kGray,
  kRgb,
  kCmyk,
  kUnusable,  // truncated, another color space, a device link, or named colors
};

// Goes by the profile's own header. A profile that is named sRGB, and has its curve
// and primaries (or only tables), needs no conversion.
// Only ToSrgb shows whether a profile can really be converted.
ProfileModel ProfileModelOf(std::span<const std::byte> profile);

class ColorConverter {
 public:
  ColorConverter();
  ~ColorConverter();
  ColorConverter(ColorConverter&&) noexcept;
  ColorConverter& operator=(ColorConverter&&) noexcept;

  // The view has the model's channels; gray and RGB may be followed by alpha.
  absl::Status ToSrgb(std::span<const std::byte> profile, ProfileModel model, const PixelView& view,
                      uint8_t* out);

 private:
  struct Tables;
  std::vector<std::unique_ptr<Tables>> tables_;
};

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_TRANSFORM_COLOR_PROFILE_H_

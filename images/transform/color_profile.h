// ColorConverter: pixels of an ICC profile to sRGB, by Little CMS.
//
//   if (ProfileModelOf(profile) == ProfileModel::kRgb) {
//     absl::Status status = converter.ToSrgb(profile, ProfileModel::kRgb, view, out);
//
// Perceptual intent, without black point compensation, 8 or 16 bits, alpha as it is: what Pillow's
// ImageCms.profileToProfile does. Gray stays gray, with the tone curve of sRGB; CMYK is taken as
// Adobe stores it in JPEGs (inverted) and becomes RGB.
//
// Lifetime: nothing is borrowed after a call.
// Thread-safety: one thread at a time; the converter keeps the tables of the last few profiles.
// Errors: InvalidArgument for a profile that Little CMS does not take, or that is of another model.
// Units: rows of the result without gaps; `out` may be the view's own pixels where these have no
// gaps, but not for CMYK.
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
  kUnusable,  // none of the above: cut, of another color space, a link of devices, named colors
};

// By the profile's own header. A profile whose description names sRGB needs no conversion. That a
// profile can be converted is known only when ToSrgb has done it.
ProfileModel ProfileModelOf(std::span<const std::byte> profile);

class ColorConverter {
 public:
  ColorConverter();
  ~ColorConverter();
  ColorConverter(ColorConverter&&) noexcept;
  ColorConverter& operator=(ColorConverter&&) noexcept;

  // The view has the model's channels, and may have alpha behind those of gray and RGB.
  absl::Status ToSrgb(std::span<const std::byte> profile, ProfileModel model, const PixelView& view,
                      uint8_t* out);

 private:
  struct Tables;
  std::vector<std::unique_ptr<Tables>> tables_;
};

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_TRANSFORM_COLOR_PROFILE_H_

// DecideTarget: decides from an image's headers how to transform it; called by
// ImageTransform::Decide.
//
//   const Target target = DecideTarget(options, file, info);
//   if (!ChangesPixels(target.changes)) return file;
//
// Units: pixels, bytes.
#ifndef SHARDPACK_IMAGES_TRANSFORM_TRANSFORM_TARGET_H_
#define SHARDPACK_IMAGES_TRANSFORM_TRANSFORM_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/core/image_info.h"
#include "images/transform/color_profile.h"
#include "images/transform/transform_options.h"

namespace shardpack::transform_internal {

struct Target {
  uint16_t changes = 0;  // sum of PixelChange; 0: this image stays as it is
  uint16_t asked = 0;    // the requested ones among them; the others are side effects
  ResizePlan resize;
  ImageFormat format = ImageFormat::kUnknown;
  bool lossless = false;    // WebP
  uint32_t colors = 3;      // 1: gray, 3: RGB
  bool alpha = false;       // keep
  bool blend = false;       // blend alpha onto the background
  bool wide = false;        // keep 16 bits
  bool bake = true;         // turn upright
  uint8_t orientation = 1;  // of the result
  // The file's profile; its model follows if the pixels must be converted from it.
  std::vector<std::byte> profile = {};
  ProfileModel model = ProfileModel::kNone;
  bool embed = false;  // store the profile in the result
};

// The same target without the profile, which has proved unusable.
Target WithoutProfile(Target target);

Target DecideTarget(const TransformOptions& options, std::span<const std::byte> file,
                    const ImageInfo& info);
// Approximate memory that a run needs besides file and result.
uint64_t WorkingBytes(const ImageInfo& info, const Target& target);
ImageInfo RawInfo(const Target& target);

}  // namespace shardpack::transform_internal

#endif  // SHARDPACK_IMAGES_TRANSFORM_TRANSFORM_TARGET_H_

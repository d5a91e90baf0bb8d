// What an image shall become, decided from its headers: ImageTransform::Decide calls it.
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
  uint16_t changes = 0;  // sum of PixelChange; 0: nothing is asked of this image
  uint16_t asked = 0;    // those of them that are asked for; the others come along
  ResizePlan resize;
  ImageFormat format = ImageFormat::kUnknown;
  bool lossless = false;    // WebP
  uint32_t colors = 3;      // 1: gray, 3: RGB
  bool alpha = false;       // kept
  bool blend = false;       // alpha is blended onto the background
  bool wide = false;        // 16 bits are kept
  bool bake = true;         // turned upright
  uint8_t orientation = 1;  // of the result
  // The file's profile, and of what model where the pixels are to be converted from it.
  std::vector<std::byte> profile = {};
  ProfileModel model = ProfileModel::kNone;
  bool embed = false;  // the profile goes into the result
};

// The same without the profile, which has turned out to be none that can be used.
Target WithoutProfile(Target target);

Target DecideTarget(const TransformOptions& options, std::span<const std::byte> file,
                    const ImageInfo& info);
// What a run may take beside file and result, about.
uint64_t WorkingBytes(const ImageInfo& info, const Target& target);
ImageInfo RawInfo(const Target& target);

}  // namespace shardpack::transform_internal

#endif  // SHARDPACK_IMAGES_TRANSFORM_TRANSFORM_TARGET_H_

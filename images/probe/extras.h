// MeasureExtras: how much of an image file is not the picture, and into how many scans that is cut.
//
//   const ImageExtras extras = MeasureExtras(file_bytes, ImageFormat::kPng);
//   if (extras.ancillary_bytes > limit) Complain(extras.max_name, extras.max_offset);
//
// Ancillary are: APPn and COM segments of a JPEG, chunks of a PNG that its image can do without
// (text, profile, EXIF, time; what is compressed in them counts as it is inflated, to 64 MiB), the
// like of a WebP, extensions of a GIF without its frames' control blocks, and what follows the end
// of any of these. TIFF and BMP are not measured.
//
// Lifetime: keeps nothing.
// Thread-safety: pure; no recursion, a fixed amount of memory.
// Errors: none; of a damaged file it says what it met before the damage. Work is linear in the
// size.
// Units: bytes from the file's start.
#ifndef SHARDPACK_IMAGES_PROBE_EXTRAS_H_
#define SHARDPACK_IMAGES_PROBE_EXTRAS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/core/image_info.h"

namespace shardpack {

struct ImageExtras {
  uint64_t ancillary_bytes = 0;
  uint32_t scans = 0;  // of a JPEG
  // The largest piece: "tEXt", "APP1", "trailing"; its bytes as they stand, so escape the name.
  std::array<char, 9> max_name = {};
  uint64_t max_bytes = 0, max_offset = 0;
};

ImageExtras MeasureExtras(std::span<const std::byte> file, ImageFormat format);

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_PROBE_EXTRAS_H_

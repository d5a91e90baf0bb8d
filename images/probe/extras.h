// MeasureExtras: how many bytes of an image file are not image data, and how many scans the image
// has.
//
//   const ImageExtras extras = MeasureExtras(file_bytes, ImageFormat::kPng);
//   if (extras.ancillary_bytes > limit) Warn(extras.max_name, extras.max_offset);
//
// Ancillary are: APPn and COM segments of a JPEG; chunks of a PNG that its image does not need
// (text, profile, EXIF, time; compressed content counts with its inflated size, up to 64 MiB) and
// their counterparts in a WebP; extensions of a GIF other than its frames' control blocks; and
// everything after the end of any of these. TIFF and BMP are not measured.
//
// Lifetime: keeps no reference.
// Thread-safety: pure; no recursion, a fixed amount of memory.
// Errors: none; for a damaged file it reports what precedes the damage. Time is linear in the size.
// Units: bytes from the start of the file.
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
  // The largest piece: "tEXt", "APP1", "trailing"; raw bytes, so escape the name.
  std::array<char, 9> max_name = {};
  uint64_t max_bytes = 0, max_offset = 0;
};

ImageExtras MeasureExtras(std::span<const std::byte> file, ImageFormat format);

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_PROBE_EXTRAS_H_

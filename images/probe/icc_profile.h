// FindIccProfile: the ICC colour profile in an image file, if any.
//
//   const std::vector<std::byte> profile = FindIccProfile(file_bytes, info.format);
//   if (!profile.empty()) Convert(profile, ...);
//
// Read from JPEG (APP2, in parts), PNG (iCCP), WebP (ICCP) and TIFF (tag 34675 of the first page).
// An inconsistent profile, or one larger than kMaxProfileBytes, counts as absent.
//
// Lifetime: returns a copy.
// Thread-safety: a pure function; memory is bounded by file and limit.
// Units: bytes.
#ifndef SHARDPACK_IMAGES_PROBE_ICC_PROFILE_H_
#define SHARDPACK_IMAGES_PROBE_ICC_PROFILE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/core/image_info.h"

namespace shardpack {

inline constexpr uint64_t kMaxProfileBytes = uint64_t{8} << 20;

std::vector<std::byte> FindIccProfile(std::span<const std::byte> file, ImageFormat format);

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_PROBE_ICC_PROFILE_H_

// FindJpegMarker: finds the end of the entropy-coded data of a JPEG, at memory speed.
//
//   const uint64_t at = FindJpegMarker(file, scan_start);
//   if (at == file.size()) return Truncated("no EOI marker");
//   const std::byte code = file[at + 1];  // neither 00, FF nor RSTn
//
// Lifetime: keeps no reference.
// Errors: none; returns file.size() if not found.
// Units: offsets are bytes from the start of `file`.
#ifndef SHARDPACK_IMAGES_PROBE_MARKER_SCAN_H_
#define SHARDPACK_IMAGES_PROBE_MARKER_SCAN_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace shardpack {

// The first offset at or after `from` of an FF byte that is followed by a marker code that ends a
// scan; file.size() if there is none. Skips stuffed FF 00, restart markers RST0..RST7 and fill
// bytes: in FF FF D9, the second FF is found (ITU-T T.81 B.1.1.2, B.1.1.5).
uint64_t FindJpegMarker(std::span<const std::byte> file, uint64_t from);

// The same without SIMD; FindJpegMarker uses it on machines without SSE2.
uint64_t FindJpegMarkerPortable(std::span<const std::byte> file, uint64_t from);

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_PROBE_MARKER_SCAN_H_

// What of a BMP's headers decides where they end.
//
//   const BmpHeaders headers = {.header_bytes = 40, .bits = 8};
//   file.subspan(headers.end());   // the pixels, if bfOffBits is 0
//
// Lifetime: a plain value.
// Thread-safety: const calls from any thread.
// Errors: none; the end may be beyond that of the file.
// Units: bytes.
#ifndef SHARDPACK_IMAGES_PROBE_BMP_HEADERS_H_
#define SHARDPACK_IMAGES_PROBE_BMP_HEADERS_H_

#include <cstdint>

namespace shardpack {

// A header that is too short for a field has 0.
struct BmpHeaders {
  uint32_t header_bytes = 0;  // of the second header, by its own first field
  uint32_t bits = 0;          // per pixel
  uint32_t compression = 0;
  uint32_t colors_used = 0;  // biClrUsed

  // The masks between a 40-byte header and the palette; longer headers contain them.
  uint64_t mask_bytes() const;
  uint64_t palette_bytes() const;
  // Offset in the file after both headers, the masks and the palette: there the pixels begin if
  // bfOffBits is 0, as Pillow and others read such a file.
  uint64_t end() const;
};

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_PROBE_BMP_HEADERS_H_

// EXIF, CIPA DC-008 (Exif 2.32) section 4.5: a TIFF 6.0 header and IFD 0.
#include <algorithm>
#include <cstring>

#include "images/probe/byte_cursor.h"
#include "images/probe/probe_internal.h"

namespace shardpack::probe_internal {

uint8_t ExifOrientation(Bytes exif) {
  // The identifier of the JPEG segment; some writers also put it into chunks of WebP and PNG.
  if (exif.size() >= 6 && std::memcmp(exif.data(), "Exif\0", 5) == 0) exif = exif.subspan(6);
  if (exif.size() < 8) return 1;
  ByteCursor::Endian endian;
  if (std::memcmp(exif.data(), "II*\0", 4) == 0) {
    endian = ByteCursor::Endian::kLittle;
  } else if (std::memcmp(exif.data(), "MM\0*", 4) == 0) {
    endian = ByteCursor::Endian::kBig;
  } else {
    return 1;
  }
  ByteCursor header(exif, endian, 4);
  ByteCursor ifd(exif, endian, header.U32());
  const uint64_t entries = std::min<uint64_t>(ifd.U16(), ifd.remaining() / 12);
  for (uint64_t i = 0; i < entries; ++i) {
    const uint16_t tag = ifd.U16(), type = ifd.U16();
    const uint32_t count = ifd.U32();
    const uint16_t value = ifd.U16();
    ifd.Skip(2);
    // Exif 2.32 4.6.4 A: Orientation is tag 274, SHORT (type 3), count 1.
    if (tag == 274) return type == 3 && count == 1 && value >= 1 && value <= 8 ? value : 1;
  }
  return 1;
}

}  // namespace shardpack::probe_internal

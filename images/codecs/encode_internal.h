// The encoders of ImageEncoder, one function per format; internal to images/codecs/encode*.cc.
//
//   absl::Status status = EncodePng(view, options, &file);
//
// Lifetime: keeps no reference.
// Errors: as encode.h. Each replaces the content of `file`.
#ifndef SHARDPACK_IMAGES_CODECS_ENCODE_INTERNAL_H_
#define SHARDPACK_IMAGES_CODECS_ENCODE_INTERNAL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "images/codecs/encode.h"
#include "images/pixels/pixels.h"

namespace shardpack::encode_internal {

absl::Status EncodeJpeg(const PixelView& view, const EncodeOptions& options,
                        std::vector<std::byte>* file);
absl::Status EncodePng(const PixelView& view, const EncodeOptions& options,
                       std::vector<std::byte>* file);
absl::Status EncodeWebp(const PixelView& view, const EncodeOptions& options,
                        std::vector<std::byte>* file);

// A TIFF header and one directory that contains only the orientation (CIPA DC-008, 4.5 and 4.6.4
// A).
constexpr std::array<uint8_t, 26> OrientationExif(uint8_t orientation) {
  return {'M', 'M', 0, 42, 0, 0, 0,           8, 0, 1, 0x01, 0x12, 0,
          3,   0,   0, 0,  1, 0, orientation, 0, 0, 0, 0,    0,    0};
}

}  // namespace shardpack::encode_internal

#endif  // SHARDPACK_IMAGES_CODECS_ENCODE_INTERNAL_H_

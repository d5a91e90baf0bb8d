// ImageEncoder: encodes pixels as JPEG, PNG, WebP, or raw samples.
//
//   ImageEncoder encoder;   // one per thread
//   absl::StatusOr<std::span<const std::byte>> file = encoder.Encode(view, {.quality = 95});
//
// Fixed settings: JPEG baseline, chroma 4:2:0, the accurate DCT, the standard Huffman tables; PNG
// zlib level 6, the library's choice of filters; WebP method 4, lossless WebP keeps the colours of
// transparent pixels; raw: the samples of all rows without gaps. Writes no metadata (time, text,
// EXIF) except the requested orientation and profile.
//
// Lifetime: the bytes borrow from the encoder until its next call.
// Thread-safety: one thread at a time. The bytes depend only on the arguments and the libraries'
// versions.
// Errors: InvalidArgument for pixels or sizes that the format cannot hold; ResourceExhausted when
// out of memory.
// Units: 8 bits per sample, or 16 for PNG; 1 to 4 channels, the second or fourth is alpha; JPEG has
// no alpha.
#ifndef SHARDPACK_IMAGES_CODECS_ENCODE_H_
#define SHARDPACK_IMAGES_CODECS_ENCODE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/core/image_info.h"
#include "images/pixels/pixels.h"

namespace shardpack {

struct EncodeOptions {
  ImageFormat format = ImageFormat::kJpeg;  // kJpeg, kPng, kWebp, kRaw
  uint8_t quality = 95;                     // 1 to 100, for JPEG and lossy WebP
  bool lossless = false;                    // for WebP
  uint8_t orientation = 1;                  // EXIF; 1: not written
  std::span<const std::byte> profile = {};  // ICC; empty: not written
};

class ImageEncoder {
 public:
  absl::StatusOr<std::span<const std::byte>> Encode(const PixelView& view,
                                                    const EncodeOptions& options);

 private:
  std::vector<std::byte> file_;
};

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_CODECS_ENCODE_H_

// ImageEncoder: pixels to an encoded image: JPEG, PNG, WebP, or raw samples.
//
//   ImageEncoder encoder;   // one a thread
//   absl::StatusOr<std::span<const std::byte>> file = encoder.Encode(view, {.quality = 95});
//
// Settings that are not options: JPEG baseline, chroma 4:2:0, the accurate DCT, the standard
// Huffman tables; PNG zlib level 6, the library's choice of filters; WebP method 4; lossless WebP
// keeps the colours of transparent pixels. Raw: the samples of all rows without gaps. Nothing else
// is written: no time, no text, no EXIF but the orientation that is asked for.
//
// Lifetime: the bytes borrow from the encoder until its next call.
// Thread-safety: one thread at a time. The bytes depend on the arguments and the libraries'
// versions alone.
// Errors: InvalidArgument for pixels or sizes that the format does not hold; ResourceExhausted
// without memory.
// Units: 8 bits a sample, or 16 for PNG; 1 to 4 channels, the second or fourth alpha; JPEG has
// none.
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
  uint8_t quality = 95;                     // 1 to 100, of JPEG and lossy WebP
  bool lossless = false;                    // of WebP
  uint8_t orientation = 1;                  // EXIF; 1: none is written
  std::span<const std::byte> profile = {};  // ICC; empty: none is written
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

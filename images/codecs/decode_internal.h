// The codecs of ImageDecoder, one function per format; internal to images/codecs/decode*.cc.
//
//   absl::Status status = DecodeJpeg(file, request, &buffer, &image);
//
// Lifetime: the image borrows from the buffer.
// Errors: as decode.h.
// Units: pixels of the image as stored.
#ifndef SHARDPACK_IMAGES_CODECS_DECODE_INTERNAL_H_
#define SHARDPACK_IMAGES_CODECS_DECODE_INTERNAL_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "images/codecs/decode.h"
#include "images/pixels/luma.h"
#include "images/pixels/pixels.h"

namespace shardpack::decode_internal {

using Bytes = std::span<const std::byte>;

struct CodecRequest {
  uint32_t width = 0, height = 0;  // required of the image; within the pixel limit
  PixelRegion region;              // inside the image, not empty
  uint32_t min_width = 0, min_height = 0;
  uint32_t channels = 3;  // 1 or 3, plus one with `alpha`
  bool alpha = false, wide = false, ink = false;
  bool stored = false;  // one byte a pixel, or two with `wide`
  bool fast = false;
  uint32_t max_scans = 100;
  uint64_t max_pixels = 64'000'000;    // also for pixels stored outside the image
  DecodeWarnings* warnings = nullptr;  // nullptr: not requested
};

// Each fills `buffer` and sets the region's view, box and scale.
absl::Status DecodeJpeg(Bytes file, const CodecRequest& request, PixelBuffer* buffer,
                        DecodedImage* image);

// Each fills `buffer` with at least the rows from the top of the image to the end of the region,
// RGB or RGBA without gaps (WholeImageBytes), or one stored number a pixel. The caller converts to
// gray and crops.
absl::Status DecodePng(Bytes file, const CodecRequest& request, PixelBuffer* buffer);
absl::Status DecodeWebp(Bytes file, const CodecRequest& request, PixelBuffer* buffer);
absl::Status DecodeGif(Bytes file, const CodecRequest& request, PixelBuffer* buffer);
absl::Status DecodeBmp(Bytes file, const CodecRequest& request, PixelBuffer* buffer);
absl::Status DecodeTiff(Bytes file, const CodecRequest& request, PixelBuffer* buffer);

inline size_t PixelBytes(const CodecRequest& request) {
  return (request.stored ? 1 : request.alpha ? 4 : 3) * (request.wide ? 2 : 1);
}
inline size_t WholeImageBytes(const CodecRequest& request) {
  return size_t{request.width} * request.height * PixelBytes(request);
}

// One number a byte, from a row that has `bits` (1, 2, 4 or 8) for each, the first in the highest
// ones.
void UnpackRow(const uint8_t* row, uint32_t bits, uint32_t width, uint8_t* to);

// "PNG: message"
absl::Status Damaged(std::string_view format, std::string_view words);
absl::Status NoMemory();
absl::Status TooManyPixels(uint32_t width, uint32_t height, uint64_t max_pixels);
absl::Status OtherSize(uint64_t width, uint64_t height, const CodecRequest& request);

}  // namespace shardpack::decode_internal

#endif  // SHARDPACK_IMAGES_CODECS_DECODE_INTERNAL_H_

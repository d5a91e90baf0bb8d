// ImageDecoder: decodes to 8-bit gray or RGB, on request with alpha or 16 bits. If the codec allows
// it (JPEG), only the requested part is decoded, at the requested scale.
//
//   ImageDecoder decoder;   // one per thread
//   absl::StatusOr<DecodedImage> image = decoder.Decode(file_bytes, sample.image, {});
//   resizer.Resize(image->view, image->box, ...);
//
// JPEG: a region is decoded together with the surroundings its edges need, so it equals that part
// of the whole image byte for byte. If the region may be smaller (min_width, min_height), scaled
// IDCTs decode it to 1/2, 1/4 or 1/8, the smallest size that is at least as large as requested in
// both directions. CMYK follows Adobe's convention (inverted), as in Pillow, OpenCV and browsers.
// Other formats are decoded completely; palettes and samples of other than 8 bits become 8 bits,
// alpha is dropped (not blended), and only the first frame of an animation or page of a TIFF is
// used. Raw pixels (ImageFormat::kRaw) have no headers and are described by their ImageInfo.
//
// Lifetime: a DecodedImage borrows only from the decoder, until its next call.
// Thread-safety: one thread at a time. The result depends only on the arguments, never on
// previously decoded images.
// Errors: DataLoss for damaged or truncated bytes, with the codec's message, never a partially
// decoded image; data after the region is not checked. Unimplemented for an unsupported kind of
// image; ResourceExhausted above the limits or when out of memory; InvalidArgument for a region
// outside the image, or bytes that are not an image. Never throws or prints.
// Units: pixels.
#ifndef SHARDPACK_IMAGES_CODECS_DECODE_H_
#define SHARDPACK_IMAGES_CODECS_DECODE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/core/image_info.h"
#include "images/pixels/pixels.h"

namespace shardpack {

// Warnings from codecs for a file whose pixels were decoded completely: oddities in the headers and
// in the data after the pixels.
struct DecodeWarnings {
  uint32_t count = 0;
  char first[200] = "";  // prefixed with the codec's name; cut if too long

  void Add(const char* codec, const char* words);
};

struct DecodeOptions {
  // In coordinates of the returned image: upright if `orient` is set, at full scale. Empty:
  // everything.
  PixelRegion region = {};
  // The minimum size of the decoded region; 0: full scale.
  uint32_t min_width = 0, min_height = 0;
  uint8_t channels = 3;  // 1: gray (luma), 3: RGB
  // Adds an alpha channel: not premultiplied, opaque if the format has none.
  bool alpha = false;
  // 16-bit samples; only for PNG, whose 8-bit samples are then multiplied by 257.
  bool wide = false;
  // Returns a CMYK or YCCK JPEG as its four stored channels, for its colour profile.
  bool ink = false;
  // Returns one channel with the numbers that are stored: of gray, or indices of a palette, not
  // scaled to 8 bits. InvalidArgument for all but gray and palettes of at most 8 bits; with `wide`
  // also gray PNG of 16 bits, which alone then has two bytes a sample.
  bool stored = false;
  // Applies the EXIF orientation.
  bool orient = true;
  // Less exact: JPEG with a faster IDCT and chroma by repetition, WebP with the latter. On
  // photographs the error is 1.3 levels on average, 2.0 root mean square, at most 55 (100 images of
  // ImageNet, //images/augment:decode_bench), for about 2 % more images per second. The error is
  // larger at qualities above 95.
  bool fast = false;
  uint64_t max_pixels = 64'000'000;  // of the whole image, and of a GIF's frame
  uint32_t max_scans = 100;          // of a progressive JPEG; encoders write about ten
  // Reset first. If set, a JPEG decoded to its last row is then read to its end.
  DecodeWarnings* warnings = nullptr;
};

struct DecodedImage {
  // All decoded pixels that the region touches.
  PixelView view;
  // The region in pixels of the view; if scaled, its edges may lie within a pixel.
  PixelBox box;
  uint32_t scale = 1;  // the view is 1/scale of the full size
};

class ImageDecoder {
 public:
  // `info` is the result of ProbeImage for these bytes; if its format is unknown, they are probed
  // here. DataLoss if the image's size differs from `info`.
  absl::StatusOr<DecodedImage> Decode(std::span<const std::byte> file, const ImageInfo& info,
                                      const DecodeOptions& options);

 private:
  PixelBuffer decoded_, turned_;
};

// Returns `info`, or probes the headers if its format is unknown; for choosing regions by the
// image's size. InvalidArgument if the bytes are not an image.
absl::StatusOr<ImageInfo> KnownImageInfo(std::span<const std::byte> file, const ImageInfo& info,
                                         uint64_t max_pixels);

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_CODECS_DECODE_H_

// ImageDecoder: encoded bytes to 8-bit gray or RGB, on request with alpha or 16 bits, of which only
// the part and the scale asked for are decoded where the codec can do so (JPEG).
//
//   ImageDecoder decoder;   // one a thread
//   absl::StatusOr<DecodedImage> image = decoder.Decode(file_bytes, sample.image, {});
//   resizer.Resize(image->view, image->box, ...);
//
// JPEG: a region is decoded with what its edges need, so it equals that part of the whole image,
// byte for byte. When the region may be smaller (min_width, min_height) it is decoded by
// scaled IDCTs to 1/2, 1/4 or 1/8, the smallest that is at least as large as asked for in both
// directions. CMYK is read by Adobe's convention (inverted), as Pillow, OpenCV and browsers do.
// Other formats are decoded whole; palettes and samples of other than 8 bits become 8 bits, alpha
// is dropped (not blended), the first frame of an animation and the first page of a TIFF is taken.
// Raw pixels (ImageFormat::kRaw) have no headers: their ImageInfo says what they are.
//
// Lifetime: a DecodedImage borrows from the decoder until its next call, and from nothing else.
// Thread-safety: one thread at a time. The answer depends on the arguments alone, never on images
// decoded before.
// Errors: DataLoss for damaged or truncated bytes, with the codec's own words, never an image with
// a gray rest; what lies behind the region is not looked at. Unimplemented for a kind of image that
// is not decoded; ResourceExhausted beyond the limits or without memory; InvalidArgument for a
// region outside the image or bytes that are no image. Nothing is thrown or printed.
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

// What codecs said of a file whose pixels came out whole: oddities of headers, and of what follows
// the pixels.
struct DecodeWarnings {
  uint32_t count = 0;
  char first[200] = "";  // with the codec's name; cut when it is long

  void Add(const char* codec, const char* words);
};

struct DecodeOptions {
  // In the image as it is returned: turned with `orient`, at full scale. Empty: all of it.
  PixelRegion region = {};
  // What the region must at least measure after decoding; 0: as much as there is.
  uint32_t min_width = 0, min_height = 0;
  uint8_t channels = 3;  // 1: gray (luma), 3: RGB
  // One more channel behind them: alpha, not multiplied into the colours, opaque where the format
  // has none.
  bool alpha = false;
  // Samples of 16 bits; of PNG alone, whose 8 bits are then multiplied by 257.
  bool wide = false;
  // A CMYK or YCCK JPEG as the four channels that it stores, for its colour profile.
  bool ink = false;
  // The EXIF orientation is applied.
  bool orient = true;
  // JPEG with a less exact IDCT and chroma by repetition, WebP the latter: on photographs 1.3
  // levels off on average, 2.0 root mean square, 55 at most (100 of ImageNet,
  // //images/augment:decode_bench), for about 2 % more images a second. More is lost at qualities
  // above 95.
  bool fast = false;
  uint64_t max_pixels = 64'000'000;  // of the whole image, and of a GIF's frame
  uint32_t max_scans = 100;          // of a progressive JPEG; encoders make about ten
  // Set to nothing first. A JPEG decoded to its last row is then read on to its end.
  DecodeWarnings* warnings = nullptr;
};

struct DecodedImage {
  // The whole decoded pixels that the region touches.
  PixelView view;
  // The region itself in pixels of the view: with a scale its edges may lie within a pixel.
  PixelBox box;
  uint32_t scale = 1;  // of the view: 1/scale of the full size
};

class ImageDecoder {
 public:
  // `info` is what ProbeImage says of these bytes; with an unknown format they are probed here. An
  // image that has another size than `info` is DataLoss.
  absl::StatusOr<DecodedImage> Decode(std::span<const std::byte> file, const ImageInfo& info,
                                      const DecodeOptions& options);

 private:
  PixelBuffer decoded_, turned_;
};

// `info`, or what a probe of the headers says when its format is unknown: for regions that are
// chosen by the image's size. InvalidArgument when the bytes are no image.
absl::StatusOr<ImageInfo> KnownImageInfo(std::span<const std::byte> file, const ImageInfo& info,
                                         uint64_t max_pixels);

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_CODECS_DECODE_H_

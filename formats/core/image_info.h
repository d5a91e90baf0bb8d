// ImageInfo: what the headers of an encoded image say, in 16 plain bytes.
//
//   ImageInfo info = sample.image;
//   if (info.format == ImageFormat::kJpeg && info.progressive()) ...
//
// Thread-safety: as any plain value.
// Units: width and height are pixels as stored (before the EXIF orientation is applied). The struct
// is stored unchanged, little-endian, in the image column of a shard index.
#ifndef SHARDPACK_FORMATS_CORE_IMAGE_INFO_H_
#define SHARDPACK_FORMATS_CORE_IMAGE_INFO_H_

#include <cstdint>
#include <string_view>

namespace shardpack {

// Stored on disk: never renumber, only append.
enum class ImageFormat : uint8_t {
  kUnknown = 0,
  kJpeg = 1,
  kPng = 2,
  kWebp = 3,
  kGif = 4,
  kBmp = 5,
  kTiff = 6,
  kRaw = 7,  // 8-bit samples without a header: height, width, channels
};

// The colour model of the encoded samples. Stored on disk: only append.
enum class ColorSpace : uint8_t {
  kUnknown = 0,
  kGray = 1,
  kGrayAlpha = 2,
  kRgb = 3,
  kRgba = 4,
  kPalette = 5,
  kCmyk = 6,
  kYcck = 7,
};

struct ImageInfo {
  enum Flag : uint8_t {
    kProgressive = 1,  // progressive JPEG or interlaced PNG/GIF
    kAnimated = 2,     // more than one frame
    kAlpha = 4,        // an alpha channel or a transparent colour
    kTruncated = 8,    // the structure ends early; packed only on request
  };

  uint32_t width = 0;
  uint32_t height = 0;
  ImageFormat format = ImageFormat::kUnknown;
  ColorSpace color_space = ColorSpace::kUnknown;
  uint8_t channels = 0;  // of the decoded image: 1, 2, 3 or 4
  uint8_t bits_per_channel = 0;
  uint8_t orientation = 1;  // EXIF 1..8; 1 when absent or unreadable
  uint8_t flags = 0;        // sum of Flag
  uint16_t reserved = 0;

  bool progressive() const { return (flags & kProgressive) != 0; }
  bool animated() const { return (flags & kAnimated) != 0; }
  bool alpha() const { return (flags & kAlpha) != 0; }
  bool truncated() const { return (flags & kTruncated) != 0; }

  friend bool operator==(const ImageInfo&, const ImageInfo&) = default;
};
static_assert(sizeof(ImageInfo) == 16);

// A kRaw image of foreign pixels is at least this large: a file could hold so many smaller ones
// that their extents do not fit in memory.
inline constexpr uint64_t kMinRawImageBytes = 16;
// A larger image is not read as a whole, unless --max-file-size asks for it.
inline constexpr uint64_t kMaxImageFileBytes = uint64_t{256} << 20;

// The normalised file extension without its dot: "jpg", "png", "webp", "gif", "bmp", "tif", "raw";
// "bin" for kUnknown. Static storage.
constexpr std::string_view ImageExtension(ImageFormat format) {
  switch (format) {
    case ImageFormat::kJpeg:
      return "jpg";
    case ImageFormat::kPng:
      return "png";
    case ImageFormat::kWebp:
      return "webp";
    case ImageFormat::kGif:
      return "gif";
    case ImageFormat::kBmp:
      return "bmp";
    case ImageFormat::kTiff:
      return "tif";
    case ImageFormat::kRaw:
      return "raw";
    case ImageFormat::kUnknown:
      break;
  }
  return "bin";
}

// Pixels without a header, 8 bits per sample: gray, gray and alpha, RGB or RGBA, depending on
// `channels`.
constexpr ImageInfo RawImageInfo(uint32_t height, uint32_t width, uint8_t channels) {
  ImageInfo info;
  info.width = width;
  info.height = height;
  info.format = ImageFormat::kRaw;
  info.color_space = channels == 1   ? ColorSpace::kGray
                     : channels == 2 ? ColorSpace::kGrayAlpha
                     : channels == 3 ? ColorSpace::kRgb
                     : channels == 4 ? ColorSpace::kRgba
                                     : ColorSpace::kUnknown;
  info.channels = channels;
  info.bits_per_channel = 8;
  if (channels == 2 || channels == 4) info.flags = ImageInfo::kAlpha;
  return info;
}

// The size of a kRaw image's pixels.
constexpr uint64_t RawImageBytes(const ImageInfo& info) {
  return uint64_t{info.width} * info.height * info.channels * (info.bits_per_channel / 8u);
}

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_CORE_IMAGE_INFO_H_

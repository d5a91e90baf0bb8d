#include "images/codecs/decode.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "images/codecs/decode_internal.h"
#include "images/pixels/blend.h"
#include "images/pixels/orientation.h"
#include "images/probe/probe.h"

namespace shardpack {
namespace decode_internal {

absl::Status Damaged(std::string_view format, std::string_view words) {
  return absl::DataLossError(absl::StrCat(absl::string_view(format.data(), format.size()), ": ",
                                          absl::string_view(words.data(), words.size())));
}

void UnpackRow(const uint8_t* row, uint32_t bits, uint32_t width, uint8_t* to) {
  for (uint32_t x = 0; x < width; ++x) {
    const uint64_t at = uint64_t{x} * bits;
    to[x] = static_cast<uint8_t>(row[at / 8] >> (8 - bits - at % 8) & ((1u << bits) - 1));
  }
}

absl::Status NoMemory() { return absl::ResourceExhaustedError("no memory for the pixels"); }

absl::Status TooManyPixels(uint32_t width, uint32_t height, uint64_t max_pixels) {
  return absl::ResourceExhaustedError(
      absl::StrCat(width, " x ", height, " pixels are more than the limit of ", max_pixels));
}

absl::Status OtherSize(uint64_t width, uint64_t height, const CodecRequest& request) {
  return absl::DataLossError(absl::StrCat("the image is ", width, " x ", height, " pixels, not ",
                                          request.width, " x ", request.height));
}

}  // namespace decode_internal

void DecodeWarnings::Add(const char* codec, const char* words) {
  if (count++ == 0) std::snprintf(first, sizeof(first), "%s: %s", codec, words);
}

namespace {

using decode_internal::CodecRequest;

// Whatever the limit is: so many bytes can be counted, of all samples of a pixel.
constexpr uint64_t kMostPixels = uint64_t{1} << 56;

// In place: no pixel moves to the right.
void ToGray(uint8_t* pixels, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const uint8_t* rgb = pixels + 3 * i;
    pixels[i] = Luma(rgb[0], rgb[1], rgb[2]);
  }
}

// The decoders' rows have no gaps.
void ToGray(const CodecRequest& request, size_t rows, uint8_t* pixels) {
  if (!request.wide && !request.alpha) return ToGray(pixels, size_t{request.width} * rows);
  PixelView view{pixels, request.width, static_cast<uint32_t>(rows), request.alpha ? 4u : 3u};
  view.sample_bytes = request.wide ? 2 : 1;
  view.stride_bytes = size_t{view.width} * view.channels * view.sample_bytes;
  ChangeColors(view, 1, pixels);  // in place: writes never overtake reads
}

absl::Status DecodeWhole(ImageFormat format, std::span<const std::byte> file,
                         const CodecRequest& request, PixelBuffer* buffer) {
  switch (format) {
    case ImageFormat::kPng:
      return decode_internal::DecodePng(file, request, buffer);
    case ImageFormat::kWebp:
      return decode_internal::DecodeWebp(file, request, buffer);
    case ImageFormat::kGif:
      return decode_internal::DecodeGif(file, request, buffer);
    case ImageFormat::kBmp:
      return decode_internal::DecodeBmp(file, request, buffer);
    case ImageFormat::kTiff:
      return decode_internal::DecodeTiff(file, request, buffer);
    default:
      return absl::UnimplementedError("no decoder for this format");
  }
}

// Copies the pixels of a raw image, converted to the requested channels.
absl::Status CopyRaw(std::span<const std::byte> file, const ImageInfo& stored,
                     const CodecRequest& request, PixelBuffer* buffer, DecodedImage* image) {
  const uint32_t from_channels = stored.channels;
  const size_t pixels = size_t{request.width} * request.height;
  if (from_channels < 1 || from_channels > 4 || stored.bits_per_channel != 8 ||
      file.size() != pixels * from_channels) {
    return decode_internal::Damaged("raw pixels",
                                    "another size than their width, height and channels");
  }
  const auto* from = reinterpret_cast<const uint8_t*>(file.data());
  const uint32_t alpha = request.alpha ? 1 : 0, channels = request.channels + alpha;
  const PixelRegion& region = request.region;
  const size_t stride_bytes = size_t{region.width} * channels;
  if (!buffer->Reserve(stride_bytes * region.height)) return decode_internal::NoMemory();
  const bool colored = from_channels >= 3, transparent = from_channels % 2 == 0;
  for (uint32_t y = 0; y < region.height; ++y) {
    const uint8_t* pixel =
        from + ((size_t{region.top} + y) * request.width + region.left) * from_channels;
    uint8_t* to = buffer->data() + y * stride_bytes;
    if (channels == from_channels) {
      std::memcpy(to, pixel, stride_bytes);
      continue;
    }
    for (uint32_t x = 0; x < region.width; ++x, pixel += from_channels, to += channels) {
      const uint8_t *green = pixel + (colored ? 1 : 0), *blue = pixel + (colored ? 2 : 0);
      if (request.channels == 1) {
        to[0] = Luma(pixel[0], *green, *blue);
      } else {
        to[0] = pixel[0];
        to[1] = *green;
        to[2] = *blue;
      }
      if (alpha > 0) to[channels - 1] = transparent ? pixel[from_channels - 1] : 255;
    }
  }
  image->view = {buffer->data(), region.width, region.height, channels, stride_bytes};
  image->box = {0, 0, double(region.width), double(region.height)};
  image->scale = 1;
  return absl::OkStatus();
}

absl::Status DecodeRegion(const ImageInfo& stored, std::span<const std::byte> file,
                          const CodecRequest& request, PixelBuffer* buffer, DecodedImage* image) {
  const ImageFormat format = stored.format;
  if (format == ImageFormat::kJpeg) {
    return decode_internal::DecodeJpeg(file, request, buffer, image);
  }
  if (format == ImageFormat::kRaw) return CopyRaw(file, stored, request, buffer, image);
  if (auto status = DecodeWhole(format, file, request, buffer); !status.ok()) return status;
  const PixelRegion& region = request.region;
  if (request.channels == 1 && !request.stored) {
    ToGray(request, size_t{region.top} + region.height, buffer->data());
  }
  const uint32_t channels = request.channels + (request.alpha ? 1 : 0);
  const uint32_t sample_bytes = request.wide ? 2 : 1;
  const size_t pixel_bytes = size_t{channels} * sample_bytes;
  const size_t stride_bytes = request.width * pixel_bytes;
  const uint8_t* first = buffer->data() + region.top * stride_bytes + region.left * pixel_bytes;
  image->view = {first, region.width, region.height, channels, stride_bytes, sample_bytes};
  image->box = {0, 0, double(region.width), double(region.height)};
  image->scale = 1;
  return absl::OkStatus();
}

template <uint32_t kPixelBytes>
void TurnPixels(const PixelView& from, const Orientation& turn, uint8_t* to, uint32_t width,
                uint32_t height) {
  for (uint32_t y = 0; y < height; ++y) {
    const uint32_t ty = turn.mirror_y ? height - 1 - y : y;
    for (uint32_t x = 0; x < width; ++x) {
      const uint32_t tx = turn.mirror_x ? width - 1 - x : x;
      const uint8_t* pixel =
          turn.transpose ? from.Row(tx) + ty * kPixelBytes : from.Row(ty) + tx * kPixelBytes;
      std::memcpy(to, pixel, kPixelBytes);
      to += kPixelBytes;
    }
  }
}

absl::Status Turn(const Orientation& turn, PixelBuffer* buffer, DecodedImage* image) {
  const PixelView from = image->view;
  uint32_t width = from.width, height = from.height;
  if (turn.transpose) std::swap(width, height);
  const size_t pixel_bytes = size_t{from.channels} * from.sample_bytes;
  if (!buffer->Reserve(size_t{width} * height * pixel_bytes)) return decode_internal::NoMemory();
  const auto turn_pixels = pixel_bytes == 1   ? TurnPixels<1>
                           : pixel_bytes == 2 ? TurnPixels<2>
                           : pixel_bytes == 3 ? TurnPixels<3>
                           : pixel_bytes == 4 ? TurnPixels<4>
                           : pixel_bytes == 6 ? TurnPixels<6>
                                              : TurnPixels<8>;
  turn_pixels(from, turn, buffer->data(), width, height);
  image->view = {buffer->data(),   width, height, from.channels, width * pixel_bytes,
                 from.sample_bytes};
  image->box = ToShown(turn, image->box, from.width, from.height);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ImageInfo> KnownImageInfo(std::span<const std::byte> file, const ImageInfo& info,
                                         uint64_t max_pixels) {
  if (info.format != ImageFormat::kUnknown) return info;
  const ProbeResult probe =
      ProbeImage(file, {.level = ProbeLevel::kHeader, .max_pixels = max_pixels});
  switch (probe.verdict) {
    case ProbeVerdict::kOk:
      return probe.info;
    case ProbeVerdict::kPixelLimit:
      return absl::ResourceExhaustedError(probe.detail);
    case ProbeVerdict::kTruncated:
    case ProbeVerdict::kBadCrc:
      return absl::DataLossError(probe.detail);
    default:
      return absl::InvalidArgumentError(probe.detail);
  }
}

absl::StatusOr<DecodedImage> ImageDecoder::Decode(std::span<const std::byte> file,
                                                  const ImageInfo& info,
                                                  const DecodeOptions& options) {
  const auto known = KnownImageInfo(file, info, options.max_pixels);
  if (!known.ok()) return known.status();
  if (options.channels != 1 && options.channels != 3) {
    return absl::InvalidArgumentError("channels are 1 or 3");
  }
  CodecRequest request;
  request.width = known->width;
  request.height = known->height;
  request.max_pixels = std::min(options.max_pixels, kMostPixels);
  if (uint64_t{request.width} * request.height > request.max_pixels) {
    return decode_internal::TooManyPixels(request.width, request.height, request.max_pixels);
  }
  const Orientation turn = options.orient ? OrientationOf(known->orientation) : Orientation();
  PixelRegion region = options.region;
  request.min_width = options.min_width;
  request.min_height = options.min_height;
  uint32_t shown_width = request.width, shown_height = request.height;
  if (turn.transpose) {
    std::swap(shown_width, shown_height);
    std::swap(request.min_width, request.min_height);
  }
  if (region == PixelRegion()) region = {0, 0, shown_width, shown_height};
  if (region.empty() || region.left >= shown_width || region.top >= shown_height ||
      region.width > shown_width - region.left || region.height > shown_height - region.top) {
    return absl::InvalidArgumentError("the region is not inside the image");
  }
  request.region = ToStored(turn, region, request.width, request.height);
  request.channels = options.channels;
  request.alpha = options.alpha;
  request.wide = options.wide && (!options.stored || known->bits_per_channel == 16);
  request.ink = options.ink;
  if ((request.alpha && known->format == ImageFormat::kJpeg) ||
      (request.wide && known->format != ImageFormat::kPng) ||
      (request.ink && known->format != ImageFormat::kJpeg)) {
    return absl::InvalidArgumentError("alpha, 16 bits or ink: not of this format");
  }
  request.stored = options.stored;
  if (request.stored) {
    const bool single =
        known->color_space == ColorSpace::kGray || known->color_space == ColorSpace::kPalette;
    if (!single || request.alpha || request.ink || (known->bits_per_channel > 8 && !request.wide)) {
      return absl::InvalidArgumentError(
          absl::StrCat("not gray or with a palette, of at most ", options.wide ? 16 : 8, " bits"));
    }
    request.channels = 1;
  }
  request.fast = options.fast;
  request.max_scans = options.max_scans;
  request.warnings = options.warnings;
  if (request.warnings != nullptr) *request.warnings = {};
  DecodedImage image;
  absl::Status status = DecodeRegion(*known, file, request, &decoded_, &image);
  if (status.ok() && !turn.identity()) status = Turn(turn, &turned_, &image);
  if (!status.ok()) return status;
  return image;
}

}  // namespace shardpack

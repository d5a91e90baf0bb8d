#include "images/decode.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "images/decode_internal.h"
#include "images/orientation.h"
#include "images/probe.h"

namespace shardpack {
namespace decode_internal {

absl::Status Damaged(std::string_view format, std::string_view words) {
  return absl::DataLossError(absl::StrCat(absl::string_view(format.data(), format.size()), ": ",
                                          absl::string_view(words.data(), words.size())));
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

// In place: each pixel moves to the left or stays.
void ToGray(uint8_t* pixels, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const uint8_t* rgb = pixels + 3 * i;
    pixels[i] = decode_internal::Luma(rgb[0], rgb[1], rgb[2]);
  }
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

absl::Status DecodeRegion(ImageFormat format, std::span<const std::byte> file,
                          const CodecRequest& request, PixelBuffer* buffer, DecodedImage* image) {
  if (format == ImageFormat::kJpeg) {
    return decode_internal::DecodeJpeg(file, request, buffer, image);
  }
  if (auto status = DecodeWhole(format, file, request, buffer); !status.ok()) return status;
  const PixelRegion& region = request.region;
  if (request.channels == 1) {
    ToGray(buffer->data(), size_t{request.width} * (region.top + region.height));
  }
  const size_t stride_bytes = size_t{request.width} * request.channels;
  const uint8_t* first =
      buffer->data() + region.top * stride_bytes + size_t{region.left} * request.channels;
  image->view = {first, region.width, region.height, request.channels, stride_bytes};
  image->box = {0, 0, double(region.width), double(region.height)};
  image->scale = 1;
  return absl::OkStatus();
}

template <uint32_t kChannels>
void TurnPixels(const PixelView& from, const Orientation& turn, uint8_t* to, uint32_t width,
                uint32_t height) {
  for (uint32_t y = 0; y < height; ++y) {
    const uint32_t ty = turn.mirror_y ? height - 1 - y : y;
    for (uint32_t x = 0; x < width; ++x) {
      const uint32_t tx = turn.mirror_x ? width - 1 - x : x;
      const uint8_t* pixel =
          turn.transpose ? from.Row(tx) + ty * kChannels : from.Row(ty) + tx * kChannels;
      std::memcpy(to, pixel, kChannels);
      to += kChannels;
    }
  }
}

absl::Status Turn(const Orientation& turn, PixelBuffer* buffer, DecodedImage* image) {
  const PixelView from = image->view;
  uint32_t width = from.width, height = from.height;
  if (turn.transpose) std::swap(width, height);
  if (!buffer->Reserve(size_t{width} * height * from.channels)) return decode_internal::NoMemory();
  if (from.channels == 1) {
    TurnPixels<1>(from, turn, buffer->data(), width, height);
  } else {
    TurnPixels<3>(from, turn, buffer->data(), width, height);
  }
  image->view = {buffer->data(), width, height, from.channels, size_t{width} * from.channels};
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
  if (uint64_t{request.width} * request.height > options.max_pixels) {
    return decode_internal::TooManyPixels(request.width, request.height, options.max_pixels);
  }
  const Orientation turn = options.orient ? OrientationOf(known->orientation) : Orientation();
  PixelRegion region = options.region;
  request.least_width = options.least_width;
  request.least_height = options.least_height;
  uint32_t shown_width = request.width, shown_height = request.height;
  if (turn.transpose) {
    std::swap(shown_width, shown_height);
    std::swap(request.least_width, request.least_height);
  }
  if (region == PixelRegion()) region = {0, 0, shown_width, shown_height};
  if (region.empty() || region.left >= shown_width || region.top >= shown_height ||
      region.width > shown_width - region.left || region.height > shown_height - region.top) {
    return absl::InvalidArgumentError("the region is not inside the image");
  }
  request.region = ToStored(turn, region, request.width, request.height);
  request.channels = options.channels;
  request.fast = options.fast;
  request.max_scans = options.max_scans;
  request.max_pixels = options.max_pixels;
  request.warnings = options.warnings;
  if (request.warnings != nullptr) *request.warnings = {};
  DecodedImage image;
  absl::Status status = DecodeRegion(known->format, file, request, &decoded_, &image);
  if (status.ok() && !turn.identity()) status = Turn(turn, &turned_, &image);
  if (!status.ok()) return status;
  return image;
}

}  // namespace shardpack

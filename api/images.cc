// One encoded image in memory: what its headers say, and its pixels.
#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "absl/strings/str_cat.h"
#include "api/errors.h"
#include "api/shardpack.h"
#include "api/structs.h"
#include "formats/core/image_info.h"
#include "formats/io/status_macros.h"
#include "images/augment/pixel_pipeline.h"
#include "images/codecs/decode.h"

using shardpack::ImageInfo;
using shardpack::PixelPipelineOptions;
using shardpack::PixelView;
using shardpack::ShownImage;
using shardpack::api::Guarded;
using shardpack::api::NotNull;

namespace {

absl::StatusOr<std::span<const std::byte>> FileOf(const void* data, uint64_t bytes) {
  RETURN_IF_ERROR(NotNull(data, "data"));
  return std::span(static_cast<const std::byte*>(data), bytes);
}

// Memory that the system has just given costs a photograph as much time as its decoding, so what is
// not too large is decoded into that of the thread's image before: of at most 4 bytes a pixel, and
// of 3 more for one that is turned.
constexpr uint64_t kKeptPixels = uint64_t{512} << 10;

absl::Status DecodeTo(std::span<const std::byte> file, const shardpack_image* stored,
                      uint32_t channels, void* pixels, uint64_t pixel_bytes) {
  if (channels != 1 && channels != 3) return absl::InvalidArgumentError("channels must be 1 or 3");
  RETURN_IF_ERROR(NotNull(pixels, "pixels"));
  const ImageInfo known = stored == nullptr ? ImageInfo() : std::bit_cast<ImageInfo>(*stored);
  // More than the limit of loaders is what the caller has allocated for.
  PixelPipelineOptions limits;
  limits.max_pixels = std::max(limits.max_pixels, pixel_bytes / channels);
  ASSIGN_OR_RETURN(const ShownImage shown, ShownImageOf(file, known, limits));
  // Not the product of bytes: sizes that are given may be any.
  if (pixel_bytes % channels != 0 ||
      uint64_t{shown.width} * shown.height != pixel_bytes / channels) {
    return absl::InvalidArgumentError(
        absl::StrCat("pixel_bytes is ", pixel_bytes, ", and not that of ", shown.width, " x ",
                     shown.height, " pixels of ", channels, channels == 1 ? " byte" : " bytes"));
  }
  shardpack::DecodeOptions options;
  options.channels = static_cast<uint8_t>(channels);
  options.max_pixels = limits.max_pixels;
  thread_local shardpack::ImageDecoder kept;
  shardpack::ImageDecoder own;
  shardpack::ImageDecoder& decoder = pixel_bytes / channels <= kKeptPixels ? kept : own;
  ASSIGN_OR_RETURN(const shardpack::DecodedImage image, decoder.Decode(file, shown.info, options));
  const PixelView& view = image.view;
  const size_t row_bytes = size_t{view.width} * channels;
  for (uint32_t y = 0; y < view.height; ++y)
    std::memcpy(static_cast<uint8_t*>(pixels) + y * row_bytes, view.Row(y), row_bytes);
  return absl::OkStatus();
}

}  // namespace

shardpack_code shardpack_image_info_of(const void* data, uint64_t bytes, uint64_t max_pixels,
                                       shardpack_image_info* info, shardpack_error** error) {
  return Guarded(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::span<const std::byte> file, FileOf(data, bytes));
    PixelPipelineOptions options;
    if (max_pixels > 0) options.max_pixels = max_pixels;
    ASSIGN_OR_RETURN(const ShownImage shown, ShownImageOf(file, {}, options));
    return shardpack::api::Fill(info, "image info", [&](shardpack_image_info& all) {
      all.stored = std::bit_cast<shardpack_image>(shown.info);
      all.width = shown.width;
      all.height = shown.height;
    });
  });
}

shardpack_code shardpack_image_decode(const void* data, uint64_t bytes,
                                      const shardpack_image* stored, uint32_t channels,
                                      void* pixels, uint64_t pixel_bytes, shardpack_error** error) {
  return Guarded(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::span<const std::byte> file, FileOf(data, bytes));
    return DecodeTo(file, stored, channels, pixels, pixel_bytes);
  });
}

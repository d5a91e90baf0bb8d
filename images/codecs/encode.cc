#include "images/codecs/encode.h"

#include <cstring>

#include "images/codecs/encode_internal.h"

namespace shardpack {
namespace {

absl::Status CheckView(const PixelView& view, const EncodeOptions& options) {
  if (view.width == 0 || view.height == 0 || view.channels < 1 || view.channels > 4) {
    return absl::InvalidArgumentError("encode: no pixels, or not 1 to 4 channels");
  }
  if (view.sample_bytes != 1 && (view.sample_bytes != 2 || options.format != ImageFormat::kPng)) {
    return absl::InvalidArgumentError("encode: 16 bits a sample are for PNG alone");
  }
  if (options.quality < 1 || options.quality > 100) {
    return absl::InvalidArgumentError("encode: the quality is 1 to 100");
  }
  return absl::OkStatus();
}

void CopyRows(const PixelView& view, std::vector<std::byte>* file) {
  const size_t row_bytes = size_t{view.width} * view.channels;
  file->resize(row_bytes * view.height);
  for (uint32_t y = 0; y < view.height; ++y) {
    std::memcpy(file->data() + y * row_bytes, view.Row(y), row_bytes);
  }
}

}  // namespace

absl::StatusOr<std::span<const std::byte>> ImageEncoder::Encode(const PixelView& view,
                                                                const EncodeOptions& options) {
  absl::Status status = CheckView(view, options);
  if (!status.ok()) return status;
  switch (options.format) {
    case ImageFormat::kJpeg:
      status = encode_internal::EncodeJpeg(view, options, &file_);
      break;
    case ImageFormat::kPng:
      status = encode_internal::EncodePng(view, options, &file_);
      break;
    case ImageFormat::kWebp:
      status = encode_internal::EncodeWebp(view, options, &file_);
      break;
    case ImageFormat::kRaw:
      CopyRows(view, &file_);
      break;
    default:
      status = absl::InvalidArgumentError("encode: no encoder for this format");
  }
  if (!status.ok()) return status;
  return std::span<const std::byte>(file_);
}

}  // namespace shardpack

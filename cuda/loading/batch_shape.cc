#include "cuda/loading/batch_shape.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

void SetOutput(const DevicePreprocess& preprocess, BatchShape& shape) {
  shape.out_width = preprocess.width > 0 ? preprocess.width : shape.width;
  shape.out_height = preprocess.height > 0 ? preprocess.height : shape.height;
  shape.format = preprocess.output;
  shape.output.emplace(preprocess.output, shape.channels);
  shape.filter = preprocess.filter;
  shape.pixel_bytes = shape.slots * shape.output->Bytes(shape.out_width, shape.out_height);
}

// Images of any size, each decoded here with parameters of its own.
absl::Status SetDecoding(const HostBatch& batch, const DeviceOptions& options, BatchShape& shape) {
  if (batch.pixels() != nullptr) {
    return absl::InvalidArgumentError("the Loader decodes, so the device need not");
  }
  if (batch.image_infos().empty()) {
    return absl::InvalidArgumentError(
        "decoding for the device needs a Loader with LoaderOptions::image_infos");
  }
  size_t field = 0;
  while (field < batch.fields() && batch.field_name(field) != kImageField) ++field;
  if (field == batch.fields()) {
    return absl::InvalidArgumentError(absl::StrCat("decoding for the device needs the field ",
                                                   std::string(kImageField), " of the Loader"));
  }
  const CropOptions& crop = options.decode->crop;
  RETURN_IF_ERROR(CheckCropOptions(crop));
  const auto& preprocess = options.preprocess;
  if (!preprocess || (preprocess->width != 0 && preprocess->width != crop.width) ||
      (preprocess->height != 0 && preprocess->height != crop.height)) {
    return absl::InvalidArgumentError(
        "decoding for the device needs its preprocessing too, to the size of the crop");
  }
  shape.decoded_field = field;
  shape.has_raw = batch.fields() > 1;
  shape.width = crop.width;
  shape.height = crop.height;
  shape.channels = options.decode->channels;
  SetOutput(*preprocess, shape);
  return absl::OkStatus();
}

// Images that the Loader decodes.
absl::Status SetPixels(const PixelBatch& pixels, const DeviceOptions& options, BatchShape& shape) {
  if (options.preprocess &&
      (pixels.type != PixelType::kU8 || pixels.layout != PixelLayout::kNhwc)) {
    return absl::InvalidArgumentError(
        "preprocessing on the device takes 8-bit pixels in NHWC from the Loader");
  }
  shape.host_pixel_bytes = shape.pixel_bytes = shape.slots * pixels.sample_bytes;
  shape.format = {.type = pixels.type, .layout = pixels.layout};
  shape.width = shape.out_width = pixels.width;
  shape.height = shape.out_height = pixels.height;
  shape.channels = pixels.channels;
  if (options.preprocess) SetOutput(*options.preprocess, shape);
  return absl::OkStatus();
}

// Batches on a device have pixels of one view, one label a sample, and fields as they are stored.
absl::Status CheckFits(const HostBatch& batch) {
  const auto refused = [](const std::string& what) {
    return absl::UnimplementedError(absl::StrCat(
        what, " not copied to a device: use the batches of the Loader, or leave that out"));
  };
  if (batch.pixels() != nullptr && batch.pixels()->views > 1)
    return refused(absl::StrCat("the ", batch.pixels()->views, " views of a sample are"));
  if (batch.mixed() != nullptr) return refused("mixed samples, with their soft labels, are");
  std::optional<size_t> field;
  if (!batch.masks().empty()) field = batch.masks()[0].field;
  if (!batch.decoded_fields().empty()) field = batch.decoded_fields()[0].field;
  if (!field) return absl::OkStatus();
  return refused(absl::StrCat("what is decoded of the field ",
                              EscapeForTerminal(batch.field_name(*field)), " is"));
}

}  // namespace

absl::StatusOr<BatchShape> BatchShape::Of(const HostBatch& batch, const DeviceOptions& options) {
  RETURN_IF_ERROR(CheckFits(batch));
  BatchShape shape;
  shape.slots = static_cast<uint32_t>(batch.size());
  if (options.decode) {
    RETURN_IF_ERROR(SetDecoding(batch, options, shape));
    return shape;
  }
  shape.has_raw = batch.pixels() == nullptr || batch.fields() > 1;
  if (batch.pixels() != nullptr) {
    RETURN_IF_ERROR(SetPixels(*batch.pixels(), options, shape));
  } else if (options.preprocess) {
    return absl::InvalidArgumentError("preprocessing on the device needs a Loader that decodes");
  }
  return shape;
}

size_t BatchShape::RawBytes(const HostBatch& batch) {
  size_t bytes = 0;
  for (const Bytes slab : batch.slabs()) bytes += DeviceAligned(slab.size());
  return bytes;
}

std::vector<PreprocessSample> BatchShape::Samples() const {
  if (decoded_field) return std::vector<PreprocessSample>(slots);
  return std::vector<PreprocessSample>(
      slots, {.pixels = nullptr,
              .width = width,
              .height = height,
              .stride_bytes = width * channels,
              .box = {0, 0, static_cast<double>(width), static_cast<double>(height)},
              .mirror = false});
}

PreprocessLaunch BatchShape::LaunchOf(const DeviceBuffer& buffer) const {
  return {.samples = buffer.samples,
          .count = slots,
          .channels = channels,
          .out_width = out_width,
          .out_height = out_height,
          .filter = filter,
          .output = *output,
          .out = buffer.output,
          .programs = buffer.programs,
          .pixel_tables = buffer.pixel_tables};
}

}  // namespace shardpack

#include "images/augment/pixel_pipeline.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

namespace shardpack {
namespace {

// The whole pixels that resizing the box reads along one axis.
void Cover(double first, double last, double margin, uint32_t size, uint32_t* begin,
           uint32_t* count) {
  const double low = std::clamp<double>(std::floor(first - margin), 0, size);
  const double high = std::clamp<double>(std::ceil(last + margin), 0, size);
  *begin = static_cast<uint32_t>(low);
  *count = static_cast<uint32_t>(high) - *begin;
}

// How far the filter reaches beyond the box, plus a pixel for rounding.
double Reach(ResizeFilter filter, double in_size, uint32_t out_size) {
  return FilterSupport(filter) * std::max(1.0, in_size / out_size) + 1;
}

}  // namespace

uint32_t LeastDecodedSize(uint32_t region, double box, uint32_t out) {
  return static_cast<uint32_t>(std::ceil(std::min<double>(region * (out / box), UINT32_MAX)));
}

PixelBox BoxIn(const DecodedImage& decoded, const PixelRegion& region, const PixelBox& box) {
  const double unit = 1.0 / decoded.scale;
  PixelBox part;
  part.left = decoded.box.left + (box.left - region.left) * unit;
  part.top = decoded.box.top + (box.top - region.top) * unit;
  part.right = std::min<double>(part.left + (box.right - box.left) * unit, decoded.view.width);
  part.bottom = std::min<double>(part.top + (box.bottom - box.top) * unit, decoded.view.height);
  return part;
}

PixelPipeline::PixelPipeline(const PixelPipelineOptions& options)
    : options_(options),
      output_(options.output, options.channels),
      pixels_(OutputFormat(), options.channels) {}

absl::StatusOr<PixelPipeline> PixelPipeline::Create(const PixelPipelineOptions& options) {
  if (auto status = CheckCropOptions(options.crop); !status.ok()) return status;
  if (options.channels != 1 && options.channels != 3) {
    return absl::InvalidArgumentError("channels are 1 or 3");
  }
  for (uint32_t c = 0; c < options.channels; ++c) {
    const float mean = options.output.mean[c], std = options.output.std[c];
    if (!std::isfinite(mean))
      return absl::InvalidArgumentError(absl::StrCat("mean is a finite number, and not ", mean));
    if (!std::isfinite(std) || std <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("std is a finite number above 0, and not ", std));
    }
  }
  return PixelPipeline(options);
}

size_t PixelPipeline::output_bytes() const {
  return output_.Bytes(options_.crop.width, options_.crop.height);
}

absl::StatusOr<ShownImage> ShownImageOf(std::span<const std::byte> file, const ImageInfo& info,
                                        const PixelPipelineOptions& options) {
  const auto known = KnownImageInfo(file, info, options.max_pixels);
  if (!known.ok()) return known.status();
  ShownImage shown{*known, {}, known->width, known->height};
  if (options.orient) shown.turn = OrientationOf(known->orientation);
  if (shown.turn.transpose) std::swap(shown.width, shown.height);
  if (shown.width == 0 || shown.height == 0)
    return absl::InvalidArgumentError("an image without pixels");
  return shown;
}

size_t PixelPipeline::pixel_bytes() const {
  return pixels_.Bytes(options_.crop.width, options_.crop.height);
}

absl::Status PixelPipeline::Run(std::span<const std::byte> file, const ImageInfo& info,
                                const SampleIdentity& sample, void* out) {
  return RunInto(file, info, sample, output_, out);
}

absl::Status PixelPipeline::RunToPixels(std::span<const std::byte> file, const ImageInfo& info,
                                        const SampleIdentity& sample, uint8_t* pixels) {
  return RunInto(file, info, sample, pixels_, pixels);
}

void PixelPipeline::PutPixels(const uint8_t* pixels, void* out) const {
  const auto [width, height] = std::pair(options_.crop.width, options_.crop.height);
  const size_t row_bytes = size_t{width} * options_.channels;
  for (uint32_t y = 0; y < height; ++y)
    output_.PutRow(pixels + y * row_bytes, y, width, height, out);
}

absl::Status PixelPipeline::RunInto(std::span<const std::byte> file, const ImageInfo& info,
                                    const SampleIdentity& sample, const PixelOutput& output,
                                    void* out) {
  const auto shown = ShownImageOf(file, info, options_);
  if (!shown.ok()) return shown.status();
  return RunCropInto(file, *shown, ChooseCrop(options_.crop, shown->width, shown->height, sample),
                     output, out);
}

absl::Status PixelPipeline::RunCropInto(std::span<const std::byte> file, const ShownImage& shown,
                                        const Crop& crop, const PixelOutput& output, void* out) {
  const ImageInfo& known = shown.info;
  const Orientation turn = shown.turn;
  // Everything else uses the stored orientation; the resize turns the image.
  const PixelBox box = ToStored(turn, crop.box, known.width, known.height);
  const double width = box.right - box.left, height = box.bottom - box.top;
  uint32_t out_width = options_.crop.width, out_height = options_.crop.height;
  if (turn.transpose) std::swap(out_width, out_height);

  DecodeOptions decode;
  const double reach_x = crop.margin ? Reach(options_.filter, width, out_width) : 0;
  const double reach_y = crop.margin ? Reach(options_.filter, height, out_height) : 0;
  Cover(box.left, box.right, reach_x, known.width, &decode.region.left, &decode.region.width);
  Cover(box.top, box.bottom, reach_y, known.height, &decode.region.top, &decode.region.height);
  decode.min_width = LeastDecodedSize(decode.region.width, width, out_width);
  decode.min_height = LeastDecodedSize(decode.region.height, height, out_height);
  decode.channels = options_.channels;
  decode.orient = false;
  decode.fast = options_.fast;
  decode.max_pixels = options_.max_pixels;
  decode.max_scans = options_.max_scans;
  const auto image = decoder_.Decode(file, known, decode);
  if (!image.ok()) return image.status();

  const PixelBox part = BoxIn(*image, decode.region, box);
  ResizeOptions resize;
  resize.width = options_.crop.width;
  resize.height = options_.crop.height;
  resize.filter = options_.filter;
  resize.transpose = turn.transpose;
  resize.mirror_x = turn.mirror_x != crop.flip;
  resize.mirror_y = turn.mirror_y;
  return resizer_.Resize(image->view, part, resize, output, out);
}

}  // namespace shardpack

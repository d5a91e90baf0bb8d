#include "images/augment/mask_pipeline.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "images/augment/nearest_pixels.h"
#include "images/pixels/orientation.h"

namespace shardpack {
namespace {

// The positions of Pillow's ImagingScaleAffine (libImaging/Geometry.c): sums, whose rounding
// decides where a centre lies on the edge between two pixels.
void FillNearest(uint32_t first, double step, uint64_t skipped, uint32_t end,
                 std::vector<uint32_t>& pixels) {
  double at = step * 0.5;
  for (uint64_t i = 0; i < skipped; ++i) at += step;
  for (uint32_t& pixel : pixels) {
    pixel = std::min(first + static_cast<uint32_t>(at), end - 1);
    at += step;
  }
}

}  // namespace

void MaskPipeline::ChoosePixels(const ShownImage& image, const SampleIdentity& sample) {
  const CropOptions& wanted = options_.crop;
  const Crop crop = ChooseCrop(wanted, image.width, image.height, sample);
  columns_.resize(wanted.width);
  rows_.resize(wanted.height);
  if (wanted.kind == CropKind::kCenter) {
    const CenterPart part = ChooseCenter(wanted, image.width, image.height);
    FillNearest(0, double(image.width) / static_cast<double>(part.resized_width),
                static_cast<uint64_t>(part.left), image.width, columns_);
    FillNearest(0, double(image.height) / static_cast<double>(part.resized_height),
                static_cast<uint64_t>(part.top), image.height, rows_);
  } else {  // a box of whole pixels
    const PixelBox& box = crop.box;
    FillNearest(static_cast<uint32_t>(box.left), (box.right - box.left) / wanted.width, 0,
                static_cast<uint32_t>(box.right), columns_);
    FillNearest(static_cast<uint32_t>(box.top), (box.bottom - box.top) / wanted.height, 0,
                static_cast<uint32_t>(box.bottom), rows_);
  }
  if (crop.flip) std::reverse(columns_.begin(), columns_.end());
}

absl::Status MaskPipeline::Run(std::span<const std::byte> mask, const ShownImage& image,
                               const SampleIdentity& sample, uint8_t* out) {
  const auto shown = ShownImageOf(mask, {}, options_);
  if (!shown.ok()) return shown.status();
  if (shown->width != image.width || shown->height != image.height) {
    return absl::InvalidArgumentError(absl::StrCat("the mask is ", shown->width, " x ",
                                                   shown->height, " pixels, its image ",
                                                   image.width, " x ", image.height));
  }
  ChoosePixels(image, sample);
  DecodeOptions decode;
  decode.region = RegionOf(columns_, rows_);
  decode.stored = true;
  decode.orient = options_.orient;
  decode.max_pixels = options_.max_pixels;
  decode.max_scans = options_.max_scans;
  const auto decoded = decoder_.Decode(mask, shown->info, decode);
  if (!decoded.ok()) return decoded.status();
  for (const uint32_t y : rows_) {
    const uint8_t* const row = decoded->view.Row(y - decode.region.top);
    for (const uint32_t x : columns_) *out++ = row[x - decode.region.left];
  }
  return absl::OkStatus();
}

}  // namespace shardpack

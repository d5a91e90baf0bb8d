#include "images/augment/label_pipeline.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "images/augment/shared_crop.h"

namespace shardpack {
namespace {

// One axis: `size` pixels from `first` on are resized to `resized`, of which the result shows those
// from `skipped` on. Exact where all are whole numbers.
struct Axis {
  double first = 0, size = 0;
  uint64_t resized = 0, skipped = 0;
};

// As ATen's nearest and nearest-exact (UpSample.h), including their rounding to binary32, which
// decides where a centre lies on the edge between two pixels.
uint32_t NearestOf(const Axis& axis, uint64_t at, bool legacy) {
  const float step = static_cast<float>(axis.size) / static_cast<float>(axis.resized);
  const float from = static_cast<float>(at) + (legacy ? 0.0f : 0.5f);
  return static_cast<uint32_t>(axis.first) + static_cast<uint32_t>(std::floor(from * step));
}

void NearestPixels(const Axis& axis, bool legacy, uint32_t end, std::vector<uint32_t>& pixels) {
  const bool whole = axis.first == std::floor(axis.first) && axis.size == std::floor(axis.size);
  const double step = axis.size / static_cast<double>(axis.resized);
  for (size_t i = 0; i < pixels.size(); ++i) {
    const uint64_t at = axis.skipped + i;
    uint32_t pixel = 0;
    if (whole) {
      pixel = NearestOf(axis, at, legacy);
      pixel = std::min(pixel, static_cast<uint32_t>(axis.first + axis.size) - 1);
    } else {
      // Rounded once, also on processors that multiply and add in one step.
      pixel = static_cast<uint32_t>(
          std::fma(static_cast<double>(at) + (legacy ? 0 : 0.5), step, axis.first));
    }
    pixels[i] = std::min(pixel, end - 1);
  }
}

PixelRegion Cover(const std::vector<uint32_t>& columns, const std::vector<uint32_t>& rows) {
  const auto [left, right] = std::minmax(columns.front(), columns.back());
  return {left, rows.front(), right - left + 1, rows.back() - rows.front() + 1};
}

uint32_t ColorOf(const uint8_t* rgb) {
  return uint32_t{rgb[0]} << 16 | uint32_t{rgb[1]} << 8 | rgb[2];
}

}  // namespace

LabelPipeline::LabelPipeline(const PixelPipelineOptions& pixels, const LabelMapOptions& options)
    : pixels_(pixels), options_(options) {
  for (const LabelColor& color : options.colors) {
    const uint8_t rgb[] = {color.red, color.green, color.blue};
    table_.emplace_back(ColorOf(rgb), color.label);
  }
  std::sort(table_.begin(), table_.end());
  for (uint32_t label = 0; label < refused_.size(); ++label) {
    const bool is_class = options.classes == 0 || label < options.classes;
    refused_[label] = !is_class && label != options.ignore ? 1 : 0;
  }
}

absl::StatusOr<LabelPipeline> LabelPipeline::Create(const PixelPipelineOptions& pixels,
                                                    const LabelMapOptions& options) {
  const uint32_t most = options.wide ? 65'535 : 255;
  if (options.ignore > most) {
    return absl::InvalidArgumentError(
        absl::StrCat("labels: ignore is ", options.ignore, ", which needs 16 bits"));
  }
  if (options.classes > most + 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "labels: ", options.classes, " classes need more than ", most + 1, " different labels"));
  }
  LabelPipeline pipeline(pixels, options);
  const auto& table = pipeline.table_;
  for (size_t i = 0; i < table.size(); ++i) {
    const auto& [color, label] = table[i];
    if (i > 0 && table[i - 1].first == color) {
      return absl::InvalidArgumentError(absl::StrFormat("labels: the colour #%06x twice", color));
    }
    if (label > most ||
        (options.classes > 0 && label >= options.classes && label != options.ignore)) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "labels: the colour #%06x has the label %d, which is too large", color, label));
    }
  }
  return pipeline;
}

size_t LabelPipeline::output_bytes() const {
  return size_t{pixels_.crop.width} * pixels_.crop.height * (options_.wide ? 2 : 1);
}

void LabelPipeline::Fill(void* out) const {
  const size_t count = size_t{pixels_.crop.width} * pixels_.crop.height;
  if (!options_.wide) {
    std::memset(out, options_.ignore, count);
    return;
  }
  for (size_t i = 0; i < count; ++i)
    std::memcpy(static_cast<std::byte*>(out) + 2 * i, &options_.ignore, 2);
}

void LabelPipeline::ChoosePixels(const ShownImage& map, const Crop& crop, bool same_size) {
  const CropOptions& wanted = pixels_.crop;
  columns_.resize(wanted.width);
  rows_.resize(wanted.height);
  Axis x = {crop.box.left, crop.box.right - crop.box.left, wanted.width, 0};
  Axis y = {crop.box.top, crop.box.bottom - crop.box.top, wanted.height, 0};
  if (wanted.kind == CropKind::kCenter && same_size) {  // resized, then cropped
    const CenterPart part = ChooseCenter(wanted, map.width, map.height);
    x = {0, double(map.width), part.resized_width, static_cast<uint64_t>(part.left)};
    y = {0, double(map.height), part.resized_height, static_cast<uint64_t>(part.top)};
  }
  NearestPixels(x, options_.legacy, map.width, columns_);
  NearestPixels(y, options_.legacy, map.height, rows_);
  if (crop.flip) std::reverse(columns_.begin(), columns_.end());
}

absl::Status LabelPipeline::Run(std::span<const std::byte> map, const ShownImage& image,
                                const Crop& crop, void* out) {
  const auto shown = ShownImageOf(map, {}, pixels_);
  if (!shown.ok()) return shown.status();
  const ImageInfo& info = shown->info;
  if (info.format == ImageFormat::kJpeg) {
    return absl::InvalidArgumentError(
        "a JPEG is no label map: its compression changes the labels; use PNG");
  }
  const bool single =
      info.color_space == ColorSpace::kGray || info.color_space == ColorSpace::kPalette;
  if (table_.empty() && !single) {
    return absl::InvalidArgumentError(
        "a label map has colours, and no table says which labels they are");
  }
  if (table_.empty() && info.bits_per_channel > 8 && info.format != ImageFormat::kPng)
    return absl::InvalidArgumentError("a label map of more than 8 bits has to be a PNG");
  const auto shared = SharedCrop(crop, image.width, image.height, shown->width, shown->height);
  if (!shared.ok()) return shared.status();
  ChoosePixels(*shown, *shared, shown->width == image.width && shown->height == image.height);
  DecodeOptions decode;
  decode.region = Cover(columns_, rows_);
  decode.stored = table_.empty();
  decode.wide = decode.stored && info.bits_per_channel > 8;
  decode.orient = pixels_.orient;
  decode.max_pixels = pixels_.max_pixels;
  const auto decoded = decoder_.Decode(map, info, decode);
  if (!decoded.ok()) return decoded.status();
  if (options_.wide) return Sample(decoded->view, decode.region, static_cast<uint16_t*>(out));
  if (decode.stored && Gather(decoded->view, decode.region, static_cast<uint8_t*>(out)))
    return absl::OkStatus();
  return Sample(decoded->view, decode.region, static_cast<uint8_t*>(out));
}

bool LabelPipeline::Gather(const PixelView& view, const PixelRegion& region, uint8_t* out) const {
  if (view.sample_bytes != 1) return false;
  uint8_t refused = 0;
  for (const uint32_t y : rows_) {
    const uint8_t* const row = view.Row(y - region.top);
    for (const uint32_t x : columns_) {
      const uint8_t label = row[x - region.left];
      refused |= refused_[label];
      *out++ = label;
    }
  }
  return refused == 0;
}

template <typename Label>
absl::Status LabelPipeline::Sample(const PixelView& view, const PixelRegion& region,
                                   Label* out) const {
  const uint32_t end = options_.classes > 0 ? options_.classes : UINT32_MAX;
  const uint32_t most = options_.wide ? 65'535 : 255;
  std::pair<uint32_t, uint16_t> last = table_.empty() ? std::pair<uint32_t, uint16_t>() : table_[0];
  for (const uint32_t y : rows_) {
    const uint8_t* const row = view.Row(y - region.top);
    for (const uint32_t x : columns_) {
      const uint8_t* const pixel =
          row + size_t{x - region.left} * view.channels * view.sample_bytes;
      uint32_t label = *pixel;
      if (!table_.empty()) {
        const uint32_t color = ColorOf(pixel);
        if (color != last.first) {
          const auto found =
              std::lower_bound(table_.begin(), table_.end(), std::pair(color, uint16_t{0}));
          if (found == table_.end() || found->first != color) {
            return absl::InvalidArgumentError(absl::StrFormat(
                "the pixel %d, %d has the colour #%06x, which no label has", x, y, color));
          }
          last = *found;
        }
        label = last.second;
      } else if (view.sample_bytes == 2) {
        uint16_t wide;
        std::memcpy(&wide, pixel, 2);
        label = wide;
      }
      if (label >= end && label != options_.ignore) {
        return absl::InvalidArgumentError(absl::StrFormat(
            "the pixel %d, %d has the label %d of %d classes", x, y, label, options_.classes));
      }
      if (label > most) {
        return absl::InvalidArgumentError(
            absl::StrFormat("the pixel %d, %d has the label %d, which needs 16 bits", x, y, label));
      }
      *out++ = static_cast<Label>(label);
    }
  }
  return absl::OkStatus();
}

}  // namespace shardpack

#include "images/augment/label_pipeline.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "images/augment/shared_crop.h"

namespace shardpack {
namespace {

uint32_t ColorOf(const uint8_t* rgb) {
  return uint32_t{rgb[0]} << 16 | uint32_t{rgb[1]} << 8 | rgb[2];
}

}  // namespace

void FillWithIgnore(const LabelMapOptions& options, std::span<std::byte> map) {
  if (!options.wide) {
    std::fill(map.begin(), map.end(), static_cast<std::byte>(options.ignore));
    return;
  }
  for (size_t at = 0; at < map.size(); at += 2) std::memcpy(map.data() + at, &options.ignore, 2);
}

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
  // 0 is the background, with which a result may well be filled.
  if (options.ignore > 0 && options.ignore < options.classes) {
    // With as many classes as there are labels, no other label is left.
    const std::string other =
        options.classes <= most ? absl::StrCat(options.classes, " or more, or ") : "";
    return absl::InvalidArgumentError(
        absl::StrCat("labels: of ", options.classes, " classes one has the label ", options.ignore,
                     ", which is what to ignore; let ignore be ", other, "0 for the background",
                     other.empty() && !options.wide ? ", or take wide labels" : ""));
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

absl::Status LabelPipeline::Run(std::span<const std::byte> map, const ShownImage& image,
                                const Crop& crop, void* out) {
  const auto shown = ShownImageOf(map, {}, pixels_);
  if (!shown.ok()) return shown.status();
  const ImageInfo& info = shown->info;
  if (info.format == ImageFormat::kJpeg) {
    return absl::InvalidArgumentError(
        "a JPEG is not a label map: its compression changes the labels; use PNG");
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
  const bool same_size = shown->width == image.width && shown->height == image.height;
  ChooseNearest(pixels_.crop, shown->width, shown->height, *shared, same_size, options_.legacy,
                nearest_);
  if (shared->flip) std::reverse(nearest_.columns.begin(), nearest_.columns.end());
  DecodeOptions decode;
  decode.region = RegionOf(nearest_.columns, nearest_.rows);
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
  for (const uint32_t y : nearest_.rows) {
    const uint8_t* const row = view.Row(y - region.top);
    for (const uint32_t x : nearest_.columns) {
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
  for (const uint32_t y : nearest_.rows) {
    const uint8_t* const row = view.Row(y - region.top);
    for (const uint32_t x : nearest_.columns) {
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

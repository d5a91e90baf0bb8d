#include "images/augment/nearest_pixels.h"

#include <algorithm>
#include <cmath>

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

void ChooseOnAxis(const Axis& axis, bool legacy, uint32_t end, std::vector<uint32_t>& pixels) {
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

}  // namespace

void ChooseNearest(const CropOptions& wanted, uint32_t width, uint32_t height, const Crop& crop,
                   bool same_size, bool legacy, NearestPixels& nearest) {
  nearest.columns.resize(wanted.width);
  nearest.rows.resize(wanted.height);
  Axis x = {crop.box.left, crop.box.right - crop.box.left, wanted.width, 0};
  Axis y = {crop.box.top, crop.box.bottom - crop.box.top, wanted.height, 0};
  if (wanted.kind == CropKind::kCenter && same_size) {  // resized, then cropped
    const CenterPart part = ChooseCenter(wanted, width, height);
    x = {0, double(width), part.resized_width, static_cast<uint64_t>(part.left)};
    y = {0, double(height), part.resized_height, static_cast<uint64_t>(part.top)};
  }
  ChooseOnAxis(x, legacy, width, nearest.columns);
  ChooseOnAxis(y, legacy, height, nearest.rows);
}

PixelRegion RegionOf(const std::vector<uint32_t>& columns, const std::vector<uint32_t>& rows) {
  const auto [left, right] = std::minmax(columns.front(), columns.back());
  return {left, rows.front(), right - left + 1, rows.back() - rows.front() + 1};
}

}  // namespace shardpack

#include "images/augment/crop.h"

#include <algorithm>
#include <cmath>

namespace shardpack {
namespace {

PixelBox WholePixels(double left, double top, double width, double height) {
  return {left, top, left + width, top + height};
}

// torchvision/transforms/transforms.py, RandomResizedCrop.get_params.
PixelBox RandomResized(const CropOptions& options, uint32_t width, uint32_t height,
                       const SampleIdentity& sample) {
  constexpr int kTries = 10;
  const double area = static_cast<double>(uint64_t{width} * height);
  const double low = std::log(options.min_ratio), high = std::log(options.max_ratio);
  for (int i = 0; i < kTries; ++i) {
    const uint64_t n = 1 + 4 * static_cast<uint64_t>(i);  // 0 is the flip
    const double target =
        area * RandomBetween(SampleRandom(sample, n), options.min_scale, options.max_scale);
    const double ratio = PortableExp(RandomBetween(SampleRandom(sample, n + 1), low, high));
    const double w = RoundHalfEven(std::sqrt(target * ratio)),
                 h = RoundHalfEven(std::sqrt(target / ratio));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    const uint32_t top =
        RandomBelow(SampleRandom(sample, n + 2), height - static_cast<uint32_t>(h) + 1);
    const uint32_t left =
        RandomBelow(SampleRandom(sample, n + 3), width - static_cast<uint32_t>(w) + 1);
    return WholePixels(left, top, w, h);
  }
  double w = width, h = height;
  const double ratio = w / h;
  if (ratio < options.min_ratio) h = std::clamp(RoundHalfEven(w / options.min_ratio), 1.0, h);
  if (ratio > options.max_ratio) w = std::clamp(RoundHalfEven(h * options.max_ratio), 1.0, w);
  return WholePixels(std::floor((width - w) / 2), std::floor((height - h) / 2), w, h);
}

PixelBox Center(const CropOptions& options, uint32_t width, uint32_t height) {
  const CenterPart part = ChooseCenter(options, width, height);
  const double x = static_cast<double>(width) / static_cast<double>(part.resized_width);
  const double y = static_cast<double>(height) / static_cast<double>(part.resized_height);
  return {part.left * x, part.top * y, std::min<double>((part.left + options.width) * x, width),
          std::min<double>((part.top + options.height) * y, height)};
}

}  // namespace

absl::Status CheckCropOptions(const CropOptions& options) {
  constexpr uint32_t kLargest = 65'535;
  if (options.width < 1 || options.height < 1 || options.width > kLargest ||
      options.height > kLargest) {
    return absl::InvalidArgumentError("crop: width and height are 1 to 65535");
  }
  if (!(options.flip_probability >= 0 && options.flip_probability <= 1)) {
    return absl::InvalidArgumentError("crop: a probability is 0 to 1");
  }
  if (options.kind == CropKind::kRandomResized) {
    if (!(options.min_scale > 0 && options.min_scale <= options.max_scale &&
          options.max_scale <= 1)) {
      return absl::InvalidArgumentError("crop: scales are above 0, at most 1, the least first");
    }
    if (!(options.min_ratio >= 1e-3 && options.min_ratio <= options.max_ratio &&
          options.max_ratio <= 1e3)) {
      return absl::InvalidArgumentError("crop: ratios are 0.001 to 1000, the least first");
    }
  }
  if (options.kind == CropKind::kCenter &&
      (options.shortest_side < std::max(options.width, options.height) ||
       options.shortest_side > kLargest)) {
    return absl::InvalidArgumentError(
        "crop: the shortest side is resized to no less than width and height");
  }
  return absl::OkStatus();
}

// torchvision's Resize of the shorter side (the longer one is truncated) and CenterCrop.
CenterPart ChooseCenter(const CropOptions& options, uint32_t width, uint32_t height) {
  const uint64_t shorter = std::min(width, height), side = options.shortest_side;
  const uint64_t resized_width = width * side / shorter, resized_height = height * side / shorter;
  const auto place = [](uint64_t resized, uint32_t size) {
    return RoundHalfEven(static_cast<double>(resized - size) / 2);
  };
  return {resized_width, resized_height, place(resized_width, options.width),
          place(resized_height, options.height)};
}

Crop ChooseCrop(const CropOptions& options, uint32_t width, uint32_t height,
                const SampleIdentity& sample) {
  Crop crop;
  crop.flip = RandomUnit(SampleRandom(sample, 0)) < options.flip_probability;
  switch (options.kind) {
    case CropKind::kRandomResized:
      crop.box = RandomResized(options, width, height, sample);
      break;
    case CropKind::kCenter:
      crop.box = Center(options, width, height);
      crop.margin = true;
      break;
    case CropKind::kResize:
      crop.box = {0, 0, double(width), double(height)};
      break;
  }
  return crop;
}

}  // namespace shardpack

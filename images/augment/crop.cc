#include "images/augment/crop.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace shardpack {
namespace {

// Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014; constants of
// Stafford's variant 13.
constexpr uint64_t Mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
  x = (x ^ x >> 27) * 0x94D049BB133111EB;
  return x ^ x >> 31;
}

constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio, odd

// A number in [0, 1), from the upper 53 bits.
double Unit(uint64_t random) { return static_cast<double>(random >> 11) * 0x1p-53; }

// A number from 0 to count - 1; the bias is below count / 2^64.
uint32_t Below(uint64_t random, uint32_t count) {
  return static_cast<uint32_t>(static_cast<unsigned __int128>(random) * count >> 64);
}

// 2^(x / 2^32) in units of 2^-32, for x below 2^32: the product of 2^(2^-k) over the set bits.
// Integers only, so the last bit does not depend on a library or processor.
uint64_t ExpTwo(uint32_t x) {
  uint64_t result = uint64_t{1} << 32;
  // The repeated square roots 2^(1/2), 2^(1/4), ..., minus one, in units of 2^-64.
  static constexpr uint64_t kRoots[] = {
      0x6A09E667F3BCC908, 0x306FE0A31B7152DE, 0x172B83C7D517ADCD, 0x0B5586CF9890F629,
      0x059B0D31585743AE, 0x02C9A3E778060EE6, 0x0163DA9FB33356D8, 0x00B1AFA5ABCBED61,
      0x0058C86DA1C09EA1, 0x002C605E2E8CEC50, 0x00162F3904051FA1, 0x000B175EFFDC76BA,
      0x00058BA01FB9F96D, 0x0002C5CC37DA9491, 0x000162E525EE0547, 0x0000B17255775C04,
      0x000058B91B5BC9AE, 0x00002C5C89D5EC6C, 0x0000162E43F4F831, 0x00000B1721BCFC99,
      0x0000058B90CF1E6D, 0x000002C5C863B73F, 0x00000162E430E5A1, 0x000000B172183551,
      0x00000058B90C0B48, 0x0000002C5C8601CC, 0x000000162E42FFF0, 0x0000000B17217FBA,
      0x000000058B90BFCD, 0x00000002C5C85FE3, 0x0000000162E42FF0, 0x00000000B17217F8};
  for (int bit = 0; bit < 32; ++bit) {
    if ((x >> (31 - bit) & 1) != 0) {
      result += static_cast<uint64_t>(static_cast<unsigned __int128>(result) * kRoots[bit] >> 64);
    }
  }
  return result;
}

// e^x with a relative error of 2^-31; x is the logarithm of a ratio.
double Exp(double x) {
  // As a power of two in units of 2^-32; libraries agree to this precision.
  const auto power = static_cast<int64_t>(std::floor(x * std::numbers::log2e * 0x1p32 + 0.5));
  const auto whole = static_cast<int>(power >> 32);
  const auto part = static_cast<uint32_t>(power & 0xFFFFFFFF);
  return std::ldexp(static_cast<double>(ExpTwo(part)) * 0x1p-32, whole);
}

// Like Python's round(): halves go to the even number.
double Round(double x) {
  const double floor = std::floor(x), rest = x - floor;
  if (rest != 0.5) return rest < 0.5 ? floor : floor + 1;
  return std::fmod(floor, 2) == 0 ? floor : floor + 1;
}

// Rounds once, also on processors that multiply and add in one step.
double Between(double low, double high, double unit) { return std::fma(unit, high - low, low); }

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
        area * Between(options.min_scale, options.max_scale, Unit(SampleRandom(sample, n)));
    const double ratio = Exp(Between(low, high, Unit(SampleRandom(sample, n + 1))));
    const double w = Round(std::sqrt(target * ratio)), h = Round(std::sqrt(target / ratio));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    const uint32_t top = Below(SampleRandom(sample, n + 2), height - static_cast<uint32_t>(h) + 1);
    const uint32_t left = Below(SampleRandom(sample, n + 3), width - static_cast<uint32_t>(w) + 1);
    return WholePixels(left, top, w, h);
  }
  double w = width, h = height;
  const double ratio = w / h;
  if (ratio < options.min_ratio) h = std::clamp(Round(w / options.min_ratio), 1.0, h);
  if (ratio > options.max_ratio) w = std::clamp(Round(h * options.max_ratio), 1.0, w);
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

uint64_t SampleRandom(const SampleIdentity& sample, uint64_t n) {
  uint64_t state = Mix(sample.seed + kGolden);
  state = Mix((state ^ sample.epoch) + kGolden);
  state = Mix((state ^ sample.id) + kGolden);
  return Mix(state + (n + 1) * kGolden);
}

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
    return Round(static_cast<double>(resized - size) / 2);
  };
  return {resized_width, resized_height, place(resized_width, options.width),
          place(resized_height, options.height)};
}

Crop ChooseCrop(const CropOptions& options, uint32_t width, uint32_t height,
                const SampleIdentity& sample) {
  Crop crop;
  crop.flip = Unit(SampleRandom(sample, 0)) < options.flip_probability;
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

#include "validators/looking/perceptual_hash.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr size_t kSide = kHashSide, kLow = 8;
// Of 256 gray values: less than the noise of a JPEG of a single colour.
constexpr int kFlatRange = 8;

using Cosines = std::array<std::array<double, kSide>, kLow>;

// scipy.fftpack.dct without normalisation: y[k] = 2 * sum of x[n] cos(pi k (2n + 1) / 2N).
Cosines MakeCosines() {
  Cosines cosines;
  for (size_t k = 0; k < kLow; ++k) {
    for (size_t n = 0; n < kSide; ++n)
      cosines[k][n] = 2 * std::cos(std::numbers::pi * static_cast<double>(k * (2 * n + 1)) /
                                   (2 * static_cast<double>(kSide)));
  }
  return cosines;
}

}  // namespace

ImageHash HashOfGray(std::span<const uint8_t, size_t{kHashSide} * kHashSide> gray) {
  static const Cosines cosines = MakeCosines();
  ImageHash hash;
  const auto [low, high] = std::minmax_element(gray.begin(), gray.end());
  hash.flat = *high - *low < kFlatRange;
  // Columns first, then rows, as imagehash does.
  std::array<std::array<double, kSide>, kLow> columns = {};
  for (size_t k = 0; k < kLow; ++k) {
    for (size_t y = 0; y < kSide; ++y) {
      for (size_t x = 0; x < kSide; ++x) columns[k][x] += cosines[k][y] * gray[y * kSide + x];
    }
  }
  std::array<double, kLow* kLow> values = {};
  for (size_t k = 0; k < kLow; ++k) {
    for (size_t l = 0; l < kLow; ++l) {
      double sum = 0;
      for (size_t x = 0; x < kSide; ++x) sum += cosines[l][x] * columns[k][x];
      values[k * kLow + l] = sum;
    }
  }
  std::array<double, kLow* kLow> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const double median = (sorted[sorted.size() / 2 - 1] + sorted[sorted.size() / 2]) / 2;
  for (const double value : values) hash.value = hash.value << 1 | (value > median ? 1 : 0);
  return hash;
}

absl::StatusOr<ImageHash> PerceptualHasher::Hash(std::span<const std::byte> file,
                                                 const ImageInfo& info) {
  DecodeOptions options;
  options.min_width = options.min_height = 2 * kHashSide;
  options.channels = 1;
  ASSIGN_OR_RETURN(const DecodedImage image, decoder_.Decode(file, info, options));
  static const PixelOutput output({.type = PixelType::kU8}, 1);
  RETURN_IF_ERROR(
      resizer_.Resize(image.view, image.box,
                      {.width = kHashSide, .height = kHashSide, .filter = ResizeFilter::kLanczos},
                      output, gray_.data()));
  return HashOfGray(gray_);
}

}  // namespace shardpack

#include "images/pixels/pixel_sums.h"

#include <algorithm>
#include <cmath>

namespace shardpack {
namespace {

// The sum of this many squared bytes fits into 32 bits.
constexpr uint32_t kBlockPixels = 65536;

__extension__ typedef unsigned __int128 Wide;

template <uint32_t kChannels>
void AddRow(const uint8_t* row, uint32_t width, PixelSums* sums) {
  for (uint32_t begin = 0; begin < width; begin += kBlockPixels) {
    const uint32_t end = std::min(width, begin + kBlockPixels);
    std::array<uint32_t, kChannels> sum = {}, squares = {};
    for (uint32_t x = begin; x < end; ++x) {
      for (uint32_t c = 0; c < kChannels; ++c) {
        const uint32_t value = row[size_t{x} * kChannels + c];
        sum[c] += value;
        squares[c] += value * value;
      }
    }
    for (uint32_t c = 0; c < 3; ++c) {
      sums->sum[c] += sum[c % kChannels];
      sums->squares[c] += squares[c % kChannels];
    }
  }
}

}  // namespace

void PixelSums::Add(const PixelView& view) {
  pixels += uint64_t{view.width} * view.height;
  for (uint32_t y = 0; y < view.height; ++y) {
    if (view.channels == 1) {
      AddRow<1>(view.Row(y), view.width, this);
    } else {
      AddRow<3>(view.Row(y), view.width, this);
    }
  }
}

void PixelSums::Merge(const PixelSums& other) {
  pixels += other.pixels;
  for (size_t c = 0; c < 3; ++c) {
    sum[c] += other.sum[c];
    squares[c] += other.squares[c];
  }
}

std::array<double, 3> PixelSums::Mean() const {
  std::array<double, 3> mean = {};
  if (pixels == 0) return mean;
  for (size_t c = 0; c < 3; ++c) {
    mean[c] = static_cast<double>(sum[c]) / static_cast<double>(pixels) / 255;
  }
  return mean;
}

// n * sum of squares - square of the sum is computed exactly, so small differences of large numbers
// are accurate.
std::array<double, 3> PixelSums::Deviation() const {
  std::array<double, 3> deviation = {};
  if (pixels == 0) return deviation;
  for (size_t c = 0; c < 3; ++c) {
    const Wide spread = Wide{pixels} * squares[c] - Wide{sum[c]} * sum[c];
    const auto count = static_cast<double>(pixels);
    deviation[c] = std::sqrt(static_cast<double>(spread)) / count / 255;
  }
  return deviation;
}

}  // namespace shardpack

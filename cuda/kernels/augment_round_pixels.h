// The body of the kernels of an AugmentRound: what a thread does to a few pixels or table entries.
//
//   const RoundWork work = MakeRoundWork(launch);
//   CountPixel<3>(work, image, x, y, add_level, add_gray);
//   RoundTableLevel(work, image, channel, level);
//   const WarpRow row = WarpRowOf(work.tails[image], y);
//   MoveFourPixels<3>(work, image, x, y, row);      // x is a multiple of four
//
// Lifetime: borrows what the launch names.
// Thread-safety: calls for different pixels.
// Units: pixels of the result.
#ifndef SHARDPACK_CUDA_KERNELS_AUGMENT_ROUND_PIXELS_H_
#define SHARDPACK_CUDA_KERNELS_AUGMENT_ROUND_PIXELS_H_

#include <cstdint>

#include "augment/pixel_arithmetic.h"
#include "augment/warp_arithmetic.h"
#include "cuda/kernels/augment_round.h"
#include "cuda/kernels/pixel_steps.h"
#include "cuda/kernels/preprocess_store.h"
#include "images/pixels/host_device.h"

namespace shardpack {

struct RoundWork {
  const RoundTail* tails;
  const PixelProgram* programs;
  const PixelTable* pixel_tables;
  const uint8_t* from;
  RoundStatistics* statistics;
  RoundTables* tables;
  bool last;  // then normalised
  PreprocessStore store;
};

RoundWork MakeRoundWork(const RoundLaunch& launch);

SHARDPACK_HOST_DEVICE inline bool NeedsStatistics(TailKind kind) {
  return kind == TailKind::kContrast || kind == TailKind::kAutocontrast ||
         kind == TailKind::kEqualize;
}

template <uint32_t kChannels>
SHARDPACK_HOST_DEVICE inline const uint8_t* LevelsAt(const RoundWork& work, uint64_t image,
                                                     uint32_t x, uint32_t y) {
  const PreprocessStore& store = work.store;
  return work.from + ((image * store.height + y) * store.width + x) * kChannels;
}

// Contrast asks for gray levels alone, the others for histograms.
template <uint32_t kChannels, typename AddLevel, typename AddGray>
SHARDPACK_HOST_DEVICE inline void CountPixel(const RoundWork& work, uint64_t image, uint32_t x,
                                             uint32_t y, const AddLevel& add_level,
                                             const AddGray& add_gray) {
  const uint8_t* const level = LevelsAt<kChannels>(work, image, x, y);
  if (work.tails[image].kind != TailKind::kContrast) {
    for (uint32_t c = 0; c < kChannels; ++c) add_level(c, level[c]);
  } else if constexpr (kChannels == 1) {
    add_gray(level[0]);
  } else {
    add_gray(static_cast<uint32_t>(GrayLevel(level[0], level[1], level[2])));
  }
}

// What becomes of a level of a channel; each entry reads the whole histogram.
SHARDPACK_HOST_DEVICE inline uint8_t RoundTableLevel(const RoundWork& work, uint64_t image,
                                                     uint32_t channel, uint32_t x) {
  const RoundTail& tail = work.tails[image];
  const RoundStatistics& statistics = work.statistics[image];
  const uint64_t pixels = uint64_t{work.store.width} * work.store.height;
  const auto level = static_cast<float>(x);
  if (tail.kind == TailKind::kContrast) {
    const auto mean =
        static_cast<float>(static_cast<double>(statistics.gray) / static_cast<double>(pixels));
    return ContrastLevel(level, tail.factor, mean * tail.rest);
  }
  const uint32_t* const histogram = statistics.histogram[channel];
  uint32_t first = 256, last = 0;
  uint64_t before = 0;
  for (uint32_t i = 0; i < 256; ++i) {
    if (histogram[i] == 0) continue;
    first = first == 256 ? i : first;
    last = i;
    before += i < x ? histogram[i] : 0;
  }
  if (tail.kind == TailKind::kAutocontrast) {
    return AutocontrastLevel(level, static_cast<float>(first), static_cast<float>(last));
  }
  return EqualizedLevel(x, before, (pixels - histogram[last]) / 255);
}

// From where a row of an affine warp takes its first pixel.
struct WarpRow {
  int64_t x, y;
};

SHARDPACK_HOST_DEVICE inline double WarpShift(const RoundTail& tail) {
  return tail.bilinear ? 0.5 : 0;
}
SHARDPACK_HOST_DEVICE inline WarpRow WarpRowOf(const RoundTail& tail, uint32_t y) {
  if (tail.kind != TailKind::kWarp || tail.perspective) return {};
  const double shift = WarpShift(tail);
  return {WarpRowStart(tail.matrix, y, shift), WarpRowStart(tail.matrix + 3, y, shift)};
}

// Pixels of the row `y`, of which `row` is the WarpRow.
template <uint32_t kChannels>
class RoundPixel {
 public:
  SHARDPACK_HOST_DEVICE RoundPixel(const RoundWork& work, uint64_t image, uint32_t y,
                                   const WarpRow& row)
      : work_(work), tail_(work.tails[image]), image_(image), y_(y), row_(row) {}

  // The pixel at x after the tail.
  SHARDPACK_HOST_DEVICE void Make(uint32_t x, uint8_t (&sample)[kChannels]) const {
    switch (tail_.kind) {
      case TailKind::kContrast:
      case TailKind::kAutocontrast:
      case TailKind::kEqualize: {
        const uint8_t* const level = At(x, y_);
        for (uint32_t c = 0; c < kChannels; ++c) sample[c] = work_.tables[image_].of[c][level[c]];
        return;
      }
      case TailKind::kSharpness:
        return Sharpen(x, y_, sample);
      case TailKind::kWarp:
        return Warp(x, sample);
      default:
        return Take(x, y_, sample);
    }
  }

 private:
  SHARDPACK_HOST_DEVICE const uint8_t* At(uint32_t x, uint32_t y) const {
    return LevelsAt<kChannels>(work_, image_, x, y);
  }
  SHARDPACK_HOST_DEVICE void Take(uint32_t x, uint32_t y, uint8_t (&sample)[kChannels]) const {
    const uint8_t* const level = At(x, y);
    for (uint32_t c = 0; c < kChannels; ++c) sample[c] = level[c];
  }

  SHARDPACK_HOST_DEVICE void Sharpen(uint32_t x, uint32_t y, uint8_t (&sample)[kChannels]) const {
    const PreprocessStore& store = work_.store;
    if (x == 0 || y == 0 || x + 1 >= store.width || y + 1 >= store.height)
      return Take(x, y, sample);
    const uint8_t *const above = At(x, y - 1), *const here = At(x, y), *const below = At(x, y + 1);
    constexpr auto kStep = static_cast<int32_t>(kChannels);
    for (int32_t c = 0; c < kStep; ++c) {
      const int32_t sum = above[c - kStep] + above[c] + above[c + kStep] + here[c - kStep] +
                          5 * here[c] + here[c + kStep] + below[c - kStep] + below[c] +
                          below[c + kStep];
      sample[c] = SharpenedLevel(here[c], sum, tail_.rest);
    }
  }

  SHARDPACK_HOST_DEVICE void Warp(uint32_t x, uint8_t (&sample)[kChannels]) const {
    int64_t at_x = row_.x + int64_t{x} * tail_.step_x, at_y = row_.y + int64_t{x} * tail_.step_y;
    if (tail_.perspective) PerspectivePlace(tail_.matrix, x, y_, WarpShift(tail_), &at_x, &at_y);
    return tail_.bilinear ? Blend(at_x, at_y, sample) : TakeNearest(at_x >> 32, at_y >> 32, sample);
  }

  SHARDPACK_HOST_DEVICE bool IsInside(int64_t x, int64_t y) const {
    return x >= 0 && y >= 0 && x < work_.store.width && y < work_.store.height;
  }
  SHARDPACK_HOST_DEVICE void TakeNearest(int64_t x, int64_t y, uint8_t (&sample)[kChannels]) const {
    if (IsInside(x, y)) return Take(static_cast<uint32_t>(x), static_cast<uint32_t>(y), sample);
    for (uint32_t c = 0; c < kChannels; ++c) sample[c] = tail_.fill;
  }
  SHARDPACK_HOST_DEVICE void Blend(int64_t at_x, int64_t at_y, uint8_t (&sample)[kChannels]) const {
    const int64_t fx = BlendPlace(at_x), fy = BlendPlace(at_y);
    const int64_t x = fx >> 8, y = fy >> 8;
    uint8_t around[4][kChannels];
    for (uint32_t i = 0; i < 4; ++i) TakeNearest(x + (i & 1), y + (i >> 1), around[i]);
    for (uint32_t c = 0; c < kChannels; ++c) {
      sample[c] = BlendedLevel(around[0][c], around[1][c], around[2][c], around[3][c],
                               static_cast<uint32_t>(fx & 255), static_cast<uint32_t>(fy & 255));
    }
  }

  const RoundWork& work_;
  const RoundTail& tail_;
  const uint64_t image_;
  const uint32_t y_;
  const WarpRow row_;
};

template <uint32_t kChannels>
SHARDPACK_HOST_DEVICE inline void MoveFourPixels(const RoundWork& work, uint64_t image, uint32_t x,
                                                 uint32_t y, const WarpRow& row) {
  const uint32_t right = x + 4 < work.store.width ? x + 4 : work.store.width;
  if (work.last && work.tails[image].kind == TailKind::kPadding) {
    for (; x < right; ++x) StoreZero<kChannels>(work.store, image, x, y);
    return;
  }
  const RoundPixel<kChannels> pixel(work, image, y, row);
  uint8_t samples[4][kChannels] = {};
  for (uint32_t p = 0; x + p < right; ++p) pixel.Make(x + p, samples[p]);
  ApplySteps<kChannels>(work.programs[image], work.pixel_tables, x, y, samples);
  StoreFourPixels<kChannels>(work.store, image, x, y, samples);
}

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_KERNELS_AUGMENT_ROUND_PIXELS_H_

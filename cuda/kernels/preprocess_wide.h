// WideTile: a tile whose filter is too wide for the tables of TileMemory: pixel after pixel, the
// rows of the input dealt out to the threads.
//
//   WideTile<3, Block>(work, sample, index, memory, block).Make(left, top, right, bottom);
//
// The weights of a column are kept as far as there is room, the others are computed for each use:
// slow, but it works for any reduction. `memory` has its axes.
//
// Lifetime: borrows everything.
// Thread-safety: every thread of the block has its own, all call Make.
// Units: pixels of the result.
#ifndef SHARDPACK_CUDA_KERNELS_PREPROCESS_WIDE_H_
#define SHARDPACK_CUDA_KERNELS_PREPROCESS_WIDE_H_

#include <cstdint>

#include "cuda/kernels/preprocess_memory.h"
#include "cuda/kernels/preprocess_pixels.h"
#include "cuda/kernels/preprocess_store.h"
#include "cuda/kernels/preprocess_work.h"
#include "images/pixels/host_device.h"
#include "images/resize/resize_weights.h"

namespace shardpack {

template <uint32_t kChannels, typename Block>
class WideTile {
 public:
  SHARDPACK_HOST_DEVICE WideTile(const PreprocessWork& work, const PreprocessSample& sample,
                                 uint64_t index, TileMemory& memory, const Block& block)
      : work_(work), sample_(sample), index_(index), memory_(memory), block_(block) {}

  SHARDPACK_HOST_DEVICE void Make(uint32_t left, uint32_t top, uint32_t right, uint32_t bottom) {
    const ResizeAxis columns = AxisOf(memory_.columns, work_.filter);
    for (uint32_t x = left; x < right; ++x) {
      block_.Spread(1, [&](uint32_t) {
        MakeLine(columns, ColumnOf(work_, sample_, x), memory_.column_lines[0]);
      });
      block_.Wait();
      const TileMemory::Line& column = memory_.column_lines[0];
      const ResizeTaps taps = TapsOf(columns, ColumnOf(work_, sample_, x));
      // As far as there is room.
      block_.Spread(Least(taps.count, TileMemory::kStageWords), [&](uint32_t i) {
        memory_.stage[i] = static_cast<uint32_t>(WeightOf(columns, taps, column.sum, i));
      });
      for (uint32_t y = top; y < bottom; ++y) MakePixel(columns, taps, x, y);
    }
  }

 private:
  static constexpr uint32_t kShares = 256;
  static_assert(kShares * kChannels <= TileMemory::kMiddleWords);

  SHARDPACK_HOST_DEVICE static void MakeLine(const ResizeAxis& axis, uint32_t i,
                                             TileMemory::Line& line) {
    const ResizeTaps taps = TapsOf(axis, i);
    line.sum = 0;
    for (uint32_t k = 0; k < taps.count; ++k) line.sum += TapWeight(axis, taps, k);
  }

  SHARDPACK_HOST_DEVICE static int32_t WeightOf(const ResizeAxis& axis, const ResizeTaps& taps,
                                                double sum, uint32_t k) {
    return FixedWeight(TapWeight(axis, taps, k) / sum);
  }

  SHARDPACK_HOST_DEVICE void MakePixel(const ResizeAxis& columns, const ResizeTaps& across,
                                       uint32_t x, uint32_t y) {
    const ResizeAxis rows = AxisOf(memory_.rows, work_.filter);
    const ResizeTaps down = TapsOf(rows, y);
    block_.Spread(1, [&](uint32_t) { MakeLine(rows, y, memory_.row_lines[0]); });
    block_.Wait();
    auto* const parts = reinterpret_cast<int32_t*>(memory_.middle);
    block_.Spread(kShares, [&](uint32_t i) {
      const double sum = memory_.row_lines[0].sum;
      PixelSums<kChannels> sums = {};
      for (uint32_t k = i; k < down.count; k += kShares) {
        sums.Add(PixelOfRow(columns, across, down.first + k), WeightOf(rows, down, sum, k));
      }
      for (uint32_t c = 0; c < kChannels; ++c) parts[i * kChannels + c] = sums.of[c];
    });
    block_.Wait();
    block_.Spread(1, [&](uint32_t) {
      uint8_t samples[kChannels];
      for (uint32_t c = 0; c < kChannels; ++c) {
        int32_t sum = kResizeFixedHalf;
        for (uint32_t i = 0; i < kShares; ++i) sum += parts[i * kChannels + c];
        samples[c] = static_cast<uint8_t>(SampleOfSum(sum));
      }
      if (work_.programs != nullptr) {
        uint8_t four[4][kChannels] = {};
        for (uint32_t c = 0; c < kChannels; ++c) four[0][c] = samples[c];
        ApplySteps<kChannels>(work_.programs[index_], work_.pixel_tables, x, y, four);
        for (uint32_t c = 0; c < kChannels; ++c) samples[c] = four[0][c];
      }
      StorePixel<kChannels>(work_.store, index_, x, y, samples);
    });
    block_.Wait();
  }

  // An input row at one column of the result.
  SHARDPACK_HOST_DEVICE uint32_t PixelOfRow(const ResizeAxis& columns, const ResizeTaps& across,
                                            uint32_t y) const {
    const uint8_t* from =
        sample_.pixels + uint64_t{y} * sample_.stride_bytes + uint64_t{across.first} * kChannels;
    const bool turned = IsTurned(sample_);
    PixelSums<kChannels> sums;
    sums.Begin();
    for (uint32_t k = 0; k < across.count; ++k) {
      uint32_t pixel = 0;
      if (turned) {
        pixel = TurnedPixel<kChannels>(sample_, across.first + k, y);
      } else {
        for (uint32_t c = 0; c < kChannels; ++c) pixel |= uint32_t{*from++} << (8 * c);
      }
      const int32_t weight = k < TileMemory::kStageWords
                                 ? static_cast<int32_t>(memory_.stage[k])
                                 : WeightOf(columns, across, memory_.column_lines[0].sum, k);
      sums.Add(pixel, weight);
    }
    return sums.Pixel();
  }

  const PreprocessWork& work_;
  const PreprocessSample& sample_;
  const uint64_t index_;
  TileMemory& memory_;
  const Block& block_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_KERNELS_PREPROCESS_WIDE_H_

// The body of the preprocess kernel: one tile of one sample's result, by the threads of one block.
//
//   TileMemory memory;                                    // __shared__ in the kernel
//   const PreprocessWork work = MakePreprocessWork(launch);
//   for (uint64_t i = 0; i < TileCount(work); ++i) PreprocessTile<3>(work, i, memory, OneThread());
//
// The kernel and the CPU run the same code. A Block says how its threads share it:
// Spread(count, f) calls f(0) to f(count - 1), dealt out to the threads; SpreadRows(rows, columns,
// f) calls f(y, x); Wait() is the barrier. Calls between two Wait() must not depend on each other.
//
// A tile is at most 32 x 128 pixels of the result, made in parts of at most 32 x 64, smaller ones
// where the filter is wide. Weights of the columns are made once a tile, those of the rows once a
// part, in fixed point; all lines have as many taps. For a part: (1) input rows into `stage`, a
// word a pixel, as many as fit; (2) `middle`: these rows at the part's width, 8 bits, eight rows a
// call; (3) columns of `middle` to results, four pixels a call, stored as vectors; where pixels lie
// side by side by way of `stage`, in lines of 16 bytes. A filter too wide even for that is computed
// pixel by pixel, all threads at one.
//
// Lifetime: borrows what PreprocessLaunch names.
// Thread-safety: a block's threads share a memory.
// Units: pixels; words of 32 bits.
#ifndef SHARDPACK_CUDA_KERNELS_PREPROCESS_TILE_H_
#define SHARDPACK_CUDA_KERNELS_PREPROCESS_TILE_H_

#include <cstdint>

#include "cuda/kernels/pixel_steps.h"
#include "cuda/kernels/preprocess.h"
#include "cuda/kernels/preprocess_memory.h"
#include "cuda/kernels/preprocess_pixels.h"
#include "cuda/kernels/preprocess_store.h"
#include "cuda/kernels/preprocess_wide.h"
#include "cuda/kernels/preprocess_work.h"
#include "images/pixels/host_device.h"
#include "images/resize/resize_weights.h"

namespace shardpack {

// One tile while it is made: what its parts share. Every thread of the block has its own.
template <uint32_t kChannels, typename Block>
class TileMaker {
 public:
  SHARDPACK_HOST_DEVICE TileMaker(const PreprocessWork& work, uint64_t sample, TileMemory& memory,
                                  const Block& block)
      : work_(work),
        store_(work.store),
        sample_(SamplesOf(work)[sample]),
        index_(sample),
        memory_(memory),
        block_(block) {}

  SHARDPACK_HOST_DEVICE void Make(uint32_t left, uint32_t top) {
    const uint32_t right = Least(left + kTileWidth, store_.width);
    const uint32_t bottom = Least(top + kTileHeight, store_.height);
    if (sample_.pixels == nullptr || !sample_.box.IsInside(sample_.width, sample_.height)) {
      return MakeZeros(left, top, right, bottom);
    }
    block_.Spread(1, [&](uint32_t) { Plan(); });
    block_.Wait();
    width_bits_ = memory_.width_bits;
    height_bits_ = memory_.height_bits;
    if (width_bits_ == 0) {
      WideTile<kChannels, Block> wide(work_, sample_, index_, memory_, block_);
      return wide.Make(left, top, right, bottom);
    }
    for (uint32_t x = left; x < right; x += 1u << width_bits_) {
      MakeWeights(memory_.columns, memory_.column_lines, memory_.weights, width_bits_,
                  [x, this](uint32_t i) { return ColumnOf(work_, sample_, x + i); });
      for (uint32_t y = top; y < bottom; y += 1u << height_bits_) MakePart(x, y);
    }
  }

 private:
  SHARDPACK_HOST_DEVICE void MakeZeros(uint32_t left, uint32_t top, uint32_t right,
                                       uint32_t bottom) {
    block_.SpreadRows(bottom - top, right - left, [&](uint32_t y, uint32_t x) {
      StoreZero<kChannels>(store_, index_, left + x, top + y);
    });
  }

  SHARDPACK_HOST_DEVICE void Plan() {
    const PixelBox& box = sample_.box;
    memory_.columns =
        SharedAxis(MakeResizeAxis(work_.filter, box.left, box.right, sample_.width, store_.width));
    memory_.rows = SharedAxis(
        MakeResizeAxis(work_.filter, box.top, box.bottom, sample_.height, store_.height));
    ChooseParts(memory_);
  }

  // Weights of 1 << bits lines in fixed point, tap by tap, so that neighbours lie side by side.
  template <typename LineAt>
  SHARDPACK_HOST_DEVICE void MakeWeights(const TileMemory::Axis& shared, TileMemory::Line* lines,
                                         int32_t* weights, uint32_t bits, const LineAt& line_at) {
    block_.Spread(1u << bits, [&](uint32_t i) {
      const ResizeAxis axis = AxisOf(shared, work_.filter);
      const ResizeTaps taps = TapsOf(axis, line_at(i));
      const EvenTaps even = EvenTapsOf(shared, taps);
      double sum = 0;
      for (uint32_t k = 0; k < even.count; ++k) {
        const uint32_t tap = k - even.before;  // in front: a large number
        const double weight = tap < taps.count ? TapWeight(axis, taps, tap) : 0;
        memory_.unscaled[(k << bits) + i] = weight;
        sum += weight;
      }
      lines[i] = {sum, even.first, even.count};
    });
    block_.Wait();
    block_.Spread(shared.taps << bits, [&](uint32_t i) {
      const TileMemory::Line& line = lines[i & ((1u << bits) - 1)];
      if (i >> bits < line.count) weights[i] = FixedWeight(memory_.unscaled[i] / line.sum);
    });
    block_.Wait();
  }

  SHARDPACK_HOST_DEVICE void MakePart(uint32_t left, uint32_t top) {
    const uint32_t width = 1u << width_bits_, height = 1u << height_bits_;
    MakeWeights(memory_.rows, memory_.row_lines,
                memory_.weights + (memory_.columns.taps << width_bits_), height_bits_,
                [top, this](uint32_t i) { return Least(top + i, store_.height - 1); });
    // Lines are in order; in reverse order with a mirror.
    const TileMemory::Line& first = memory_.column_lines[sample_.mirror ? width - 1 : 0];
    const TileMemory::Line& last = memory_.column_lines[sample_.mirror ? 0 : width - 1];
    const uint32_t begin = first.first & ~7u;
    const uint32_t columns = StageWidth(begin, last.first + last.count);
    const uint32_t row_begin = memory_.row_lines[0].first;
    const TileMemory::Line& bottom = memory_.row_lines[height - 1];
    const uint32_t row_end = bottom.first + bottom.count;
    if (columns <= TileMemory::kStagePitch) {
      NarrowAll<TileMemory::kStagePitch>(row_begin, row_end, begin, columns);
    } else {
      NarrowAll<0>(row_begin, row_end, begin, columns);
    }
    PutPart(left, top, row_begin);
    block_.Wait();
  }

  // Rows of the input, as many as fit at once, to `middle`. Their pitch is kPitch, or `columns`.
  template <uint32_t kPitch>
  SHARDPACK_HOST_DEVICE void NarrowAll(uint32_t row_begin, uint32_t row_end, uint32_t begin,
                                       uint32_t columns) {
    const uint32_t pitch = kPitch == 0 ? columns : kPitch;
    const uint32_t at_once =
        TileMemory::kStageWords / pitch / TileMemory::kRowsACall * TileMemory::kRowsACall;
    for (uint32_t row = row_begin; row < row_end; row += at_once) {
      const uint32_t count = Least(at_once, row_end - row);
      Stage(row, count, begin, columns, pitch);
      block_.Wait();
      Narrow(count, begin, pitch, memory_.middle + ((row - row_begin) << width_bits_));
      block_.Wait();
    }
  }

  SHARDPACK_HOST_DEVICE void Stage(uint32_t row, uint32_t count, uint32_t begin, uint32_t columns,
                                   uint32_t pitch) {
    if (IsTurned(sample_)) return StageTurned(row, count, begin, columns, pitch);
    const uint8_t* const from = sample_.pixels + uint64_t{row} * sample_.stride_bytes;
    const uint64_t stride_bytes = sample_.stride_bytes;
    const uint32_t row_bytes = sample_.width * kChannels;
    uint32_t* const stage = memory_.stage;
    block_.SpreadRows(count, columns / 8, [=](uint32_t y, uint32_t eight) {
      StageEightPixels<kChannels>(from + y * stride_bytes, row_bytes,
                                  (begin + 8 * eight) * kChannels, stage + y * pitch + 8 * eight);
    });
  }

  // Neighbours in memory are read by neighbouring threads.
  SHARDPACK_HOST_DEVICE void StageTurned(uint32_t row, uint32_t count, uint32_t begin,
                                         uint32_t columns, uint32_t pitch) {
    const PreprocessSample& sample = sample_;
    uint32_t* const stage = memory_.stage;
    const uint32_t width = Least(columns, sample.width - begin);
    const auto put = [=, &sample](uint32_t y, uint32_t x) {
      stage[y * pitch + x] = TurnedPixel<kChannels>(sample, begin + x, row + y);
    };
    if (sample.turn.transpose) {
      block_.SpreadRows(width, count, [=](uint32_t x, uint32_t y) { put(y, x); });
    } else {
      block_.SpreadRows(count, width, put);
    }
  }

  // Several rows a call, which share their weights. Rows after the last one are computed too, from
  // whatever the memory holds: there is room for them, and they are not read.
  SHARDPACK_HOST_DEVICE void Narrow(uint32_t count, uint32_t begin, uint32_t pitch,
                                    uint32_t* middle) {
    constexpr uint32_t kRows = TileMemory::kRowsACall;
    const uint32_t bits = width_bits_, width = 1u << bits;
    const uint32_t* const stage = memory_.stage;
    const TileMemory::Line* const lines = memory_.column_lines;
    const int32_t* const all_weights = memory_.weights;
    block_.Spread(((count + kRows - 1) / kRows) << bits, [=](uint32_t i) {
      const uint32_t x = i & (width - 1), y = (i >> bits) * kRows;
      const TileMemory::Line& line = lines[x];
      const uint32_t* from = stage + y * pitch + (line.first - begin);
      const int32_t* weight = all_weights + x;
      PixelSums<kChannels> sums[kRows];
      for (auto& sum : sums) sum.Begin();
      for (uint32_t k = line.count; k != 0; --k, ++from, weight += width) {
        for (uint32_t r = 0; r < kRows; ++r) sums[r].Add(from[r * pitch], *weight);
      }
      uint32_t* const to = middle + (y << bits) + x;
      for (uint32_t r = 0; r < kRows; ++r) to[r << bits] = sums[r].Pixel();
    });
  }

  SHARDPACK_HOST_DEVICE void PutPart(uint32_t left, uint32_t top, uint32_t row_begin) {
    const uint32_t width = 1u << width_bits_;
    const uint32_t number_bytes = StoredBytes(store_.type);
    if (!store_.lines || (width * kChannels * number_bytes) % kLineBytes != 0) {
      return MakePixels(left, top, row_begin,
                        [&](uint32_t x, uint32_t y, const uint8_t(&samples)[4][kChannels]) {
                          StoreFourPixels<kChannels>(store_, index_, left + x, top + y, samples);
                        });
    }
    // Pixels lie side by side in the result: by way of the memory, neighbouring threads store
    // neighbouring lines.
    auto* const staged = reinterpret_cast<uint8_t*>(memory_.stage);
    MakePixels(left, top, row_begin,
               [&](uint32_t x, uint32_t y, const uint8_t(&samples)[4][kChannels]) {
                 StageFourSamples<kChannels>(samples, staged + (y * width + x) * kChannels);
               });
    block_.Wait();
    const uint32_t line_numbers = kLineBytes / number_bytes;
    const uint32_t lines = Least(width, store_.width - left) * kChannels / line_numbers;
    block_.SpreadRows(Least(1u << height_bits_, store_.height - top), lines,
                      [=, this](uint32_t y, uint32_t line) {
                        const uint32_t at = line * line_numbers;
                        StoreLine<kChannels>(store_, index_, left, top + y, at,
                                             staged + y * width * kChannels + at);
                      });
  }

  // `put(x, y, samples)`: four pixels of a row of the part.
  template <typename Put>
  SHARDPACK_HOST_DEVICE void MakePixels(uint32_t left, uint32_t top, uint32_t row_begin,
                                        const Put& put) {
    const uint32_t bits = width_bits_, width = 1u << bits, height = 1u << height_bits_;
    const int32_t* const weights = memory_.weights + (memory_.columns.taps << bits);
    const TileMemory::Line* const lines = memory_.row_lines;
    const uint32_t* const middle = memory_.middle;
    block_.Spread(height << (bits - 2), [=, this, &put](uint32_t i) {
      const uint32_t y = i >> (bits - 2), x = (i & ((width >> 2) - 1)) * 4;
      if (left + x >= store_.width || top + y >= store_.height) return;
      const TileMemory::Line& line = lines[y];
      const uint32_t* from = middle + ((line.first - row_begin) << bits) + x;
      const int32_t* weight = weights + y;
      PixelSums<kChannels> sums[4];
      for (auto& sum : sums) sum.Begin();
      for (uint32_t k = line.count; k != 0; --k, from += width, weight += height) {
        uint32_t pixels[4];
        LoadFourWords(from, pixels);
        for (uint32_t p = 0; p < 4; ++p) sums[p].Add(pixels[p], *weight);
      }
      uint8_t samples[4][kChannels];
      for (uint32_t p = 0; p < 4; ++p) {
        for (uint32_t c = 0; c < kChannels; ++c) {
          samples[p][c] = static_cast<uint8_t>(SampleOfSum(sums[p].of[c]));
        }
      }
      if (work_.programs != nullptr) {
        ApplySteps<kChannels>(work_.programs[index_], work_.pixel_tables, left + x, top + y,
                              samples);
      }
      put(x, y, samples);
    });
  }

  const PreprocessWork& work_;
  const PreprocessStore& store_;
  const PreprocessSample& sample_;
  const uint64_t index_;
  TileMemory& memory_;
  const Block& block_;
  uint32_t width_bits_ = 0, height_bits_ = 0;
};

// The i-th tile: tiles of a sample side by side, then rows of them, then samples.
template <uint32_t kChannels, typename Block>
SHARDPACK_HOST_DEVICE void PreprocessTile(const PreprocessWork& work, uint64_t tile,
                                          TileMemory& memory, const Block& block) {
  const uint32_t of_sample = work.tiles_x * work.tiles_y;
  const uint64_t sample = tile / of_sample;
  const auto rest = static_cast<uint32_t>(tile - sample * of_sample);
  const uint32_t y = rest / work.tiles_x, x = rest - y * work.tiles_x;
  if (const int64_t* const labels = LabelsOf(work); rest == 0 && labels != nullptr) {
    block.Spread(1, [&](uint32_t) { work.out_labels[sample] = labels[sample]; });
  }
  TileMaker<kChannels, Block>(work, sample, memory, block).Make(x * kTileWidth, y * kTileHeight);
}

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_KERNELS_PREPROCESS_TILE_H_

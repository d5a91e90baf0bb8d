// The body of the preprocess kernel: one tile of one sample's result, by the threads of one block.
//
//   TileMemory memory;                                    // __shared__ in the kernel
//   const PreprocessWork work = MakePreprocessWork(launch);
//   for (uint64_t i = 0; i < TileCount(work); ++i) PreprocessTile<3>(work, i, memory, OneThread());
//
// The code is the kernel's own and runs as it is on the CPU. A Block says how its threads share it:
// Spread(count, f) calls f(0) to f(count - 1), dealt out to the threads; SpreadRows(rows, columns,
// f) calls f(y, x); Wait() is the barrier. Calls between two Wait() must not depend on each other.
//
// A tile is at most 32 x 128 pixels of the result, made in parts of at most 32 x 32, smaller ones
// where the filter is wide. Weights of the columns are made once a tile, those of the rows once a
// part, in fixed point. Of a part: (1) input rows into `stage`, a word a pixel, as many as fit; (2)
// `middle`: these rows at the part's width, 8 bits, eight rows a call; (3) columns of `middle` to
// results, four pixels a call, stored as vectors. A filter too wide even for that is computed
// pixel by pixel, all threads at one.
// Lifetime: borrows what PreprocessLaunch names. Thread-safety: a block's threads share a memory.
// Errors: none. Units: pixels; words of 32 bits.
#ifndef SHARDPACK_CUDA_PREPROCESS_TILE_H_
#define SHARDPACK_CUDA_PREPROCESS_TILE_H_

#include <cstdint>
#include <cstring>

#include "cuda/preprocess.h"
#include "cuda/preprocess_store.h"
#include "cuda/preprocess_work.h"
#include "images/host_device.h"
#include "images/resize_weights.h"

namespace shardpack {

struct TileMemory {
  static constexpr uint32_t kMiddleWords = 2560, kWeights = 1024;
  // Of staged rows, where the window is no wider: a constant makes addresses cheap. And how many
  // rows a call narrows.
  static constexpr uint32_t kStagePitch = 88, kRowsACall = 8;
  static constexpr uint32_t kStageWords = 64 * kStagePitch;
  static constexpr uint32_t kLargestPart = 32;

  // The taps of a column or a row of the part, and what its weights are made of.
  struct Line {
    double sum;
    uint32_t first, count;
  };
  // As ResizeAxis, which has initialisers and so cannot be shared.
  struct Axis {
    double first, step, shrink, support;
    uint32_t in_size, taps;
  };

  union {
    alignas(16) uint32_t stage[kStageWords];
    double unscaled[kWeights];  // weights before they are divided by their sum
  };
  alignas(16) uint32_t middle[kMiddleWords];
  int32_t weights[kWeights];  // of columns, then of rows; tap by tap
  Line column_lines[kLargestPart], row_lines[kLargestPart];
  Axis columns, rows;
  // Of the part's width, at least 4, and height. No width: the filter is too wide.
  uint32_t width_bits, height_bits;
};

SHARDPACK_HOST_DEVICE inline uint32_t Least(uint32_t a, uint32_t b) { return a < b ? a : b; }

SHARDPACK_HOST_DEVICE inline ResizeAxis AxisOf(const TileMemory::Axis& axis, ResizeFilter filter) {
  return {filter, axis.in_size, axis.first, axis.step, axis.shrink, axis.support};
}

SHARDPACK_HOST_DEVICE inline TileMemory::Axis SharedAxis(const ResizeAxis& axis) {
  return {axis.first,   axis.step,    axis.shrink,
          axis.support, axis.in_size, Least(MostTaps(axis), axis.in_size)};
}

// The most input pixels that `size` neighbours of the result need.
SHARDPACK_HOST_DEVICE inline uint32_t Span(const TileMemory::Axis& axis, uint32_t size) {
  const double span = (size - 1) * axis.step + axis.taps + 2;
  return span > axis.in_size ? axis.in_size : static_cast<uint32_t>(span);
}

// Pixels of a staged row: from and to a multiple of four.
SHARDPACK_HOST_DEVICE inline uint32_t StageWidth(uint32_t begin, uint32_t end) {
  return (end - (begin & ~3u) + 3) & ~3u;
}

// Halves the part until it fits the memory.
SHARDPACK_HOST_DEVICE inline void ChooseParts(TileMemory& memory) {
  const TileMemory::Axis &columns = memory.columns, &rows = memory.rows;
  uint32_t width_bits = 5, height_bits = 5;
  for (;;) {
    const uint32_t width = 1u << width_bits, height = 1u << height_bits;
    // Sizes below 2^16 and taps below 2^32: in 64 bits nothing overflows.
    const bool fits =
        uint64_t{columns.taps} * width + uint64_t{rows.taps} * height <= TileMemory::kWeights &&
        (uint64_t{Span(rows, height)} + TileMemory::kRowsACall) * width <=
            TileMemory::kMiddleWords &&
        (uint64_t{Span(columns, width)} + 6) * TileMemory::kRowsACall <= TileMemory::kStageWords;
    if (fits) break;
    if (width_bits > 2 && width_bits >= height_bits) {
      --width_bits;
    } else if (height_bits > 0) {
      --height_bits;
    } else if (width_bits > 2) {
      --width_bits;
    } else {
      width_bits = 0;
      break;
    }
  }
  memory.width_bits = width_bits;
  memory.height_bits = height_bits;
}

// Four bytes of a row, from byte `at`, which is a multiple of four after the row's own alignment.
SHARDPACK_HOST_DEVICE inline uint32_t LoadWord(const uint8_t* aligned) {
#ifdef __CUDA_ARCH__
  return __ldg(reinterpret_cast<const uint32_t*>(aligned));
#else
  uint32_t word;
  std::memcpy(&word, aligned, sizeof(word));
  return word;
#endif
}

// The word that begins `shift` bits into the pair.
SHARDPACK_HOST_DEVICE inline uint32_t Joined(uint32_t low, uint32_t high, uint32_t shift) {
#ifdef __CUDA_ARCH__
  return __funnelshift_r(low, high, shift);
#else
  return static_cast<uint32_t>(((uint64_t{high} << 32) | low) >> shift);
#endif
}

// Four pixels from byte `at` of a row as kChannels words without gaps; zeros behind the row.
template <uint32_t kChannels>
SHARDPACK_HOST_DEVICE inline void LoadFourPixels(const uint8_t* row, uint32_t row_bytes,
                                                 uint32_t at, uint32_t* packed) {
  const uint8_t* from = row + at;
  const auto ahead = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(from) & 3);
  const uint32_t words = kChannels + (ahead != 0);
  // Whole words of the row alone: what lies around it may be nobody's.
  if (at >= ahead && row_bytes - at + ahead >= 4 * words) {
    from -= ahead;
    uint32_t low = LoadWord(from);
    for (uint32_t i = 0; i < kChannels; ++i) {
      const uint32_t high = i + 1 < words ? LoadWord(from + 4 * (i + 1)) : 0;
      packed[i] = Joined(low, high, 8 * ahead);
      low = high;
    }
    return;
  }
  for (uint32_t i = 0; i < kChannels; ++i) {
    packed[i] = 0;
    for (uint32_t k = 0; k < 4; ++k) {
      const uint32_t byte = 4 * i + k;
      if (byte < row_bytes - at) packed[i] |= uint32_t{from[byte]} << (8 * k);
    }
  }
}

// A word a pixel: red in the lowest byte, then green and blue.
template <uint32_t kChannels>
SHARDPACK_HOST_DEVICE inline void StageFourPixels(const uint8_t* row, uint32_t row_bytes,
                                                  uint32_t at, uint32_t* words) {
  uint32_t packed[kChannels];
  LoadFourPixels<kChannels>(row, row_bytes, at, packed);
  uint32_t pixels[4];
  if constexpr (kChannels == 3) {
    pixels[0] = packed[0] & 0xFFFFFF;
    pixels[1] = Joined(packed[0], packed[1], 24) & 0xFFFFFF;
    pixels[2] = Joined(packed[1], packed[2], 16) & 0xFFFFFF;
    pixels[3] = packed[2] >> 8;
  } else {
    for (uint32_t i = 0; i < 4; ++i) pixels[i] = packed[0] >> (8 * i) & 0xFF;
  }
  StoreFourWords(pixels, words);
}

// One of the word's bytes.
SHARDPACK_HOST_DEVICE inline int32_t ByteOf(uint32_t word, uint32_t i) {
#ifdef __CUDA_ARCH__
  return static_cast<int32_t>(__byte_perm(word, 0, 0x4440 + i));
#else
  return static_cast<int32_t>(word >> (8 * i) & 0xFF);
#endif
}

template <uint32_t kChannels>
struct PixelSums {
  int32_t of[kChannels];

  SHARDPACK_HOST_DEVICE void Begin() {
    for (uint32_t c = 0; c < kChannels; ++c) of[c] = kResizeFixedHalf;
  }
  SHARDPACK_HOST_DEVICE void Add(uint32_t pixel, int32_t weight) {
    for (uint32_t c = 0; c < kChannels; ++c) {
      of[c] += weight * ByteOf(pixel, c);
    }
  }
  SHARDPACK_HOST_DEVICE uint32_t Pixel() const {
    uint32_t pixel = 0;
    for (uint32_t c = 0; c < kChannels; ++c) pixel |= SampleOfSum(of[c]) << (8 * c);
    return pixel;
  }
};

// One tile while it is made: what its parts share. Every thread of the block has its own.
template <uint32_t kChannels, typename Block>
class TileMaker {
 public:
  SHARDPACK_HOST_DEVICE TileMaker(const PreprocessWork& work, uint64_t sample, TileMemory& memory,
                                  const Block& block)
      : work_(work),
        store_(work.store),
        sample_(work.samples[sample]),
        index_(sample),
        memory_(memory),
        block_(block) {}

  SHARDPACK_HOST_DEVICE void Make(uint32_t left, uint32_t top) {
    const uint32_t right = Least(left + kTileWidth, store_.width);
    const uint32_t bottom = Least(top + kTileHeight, store_.height);
    if (sample_.pixels == nullptr || !BoxIsInside(sample_)) {
      return MakeZeros(left, top, right, bottom);
    }
    block_.Spread(1, [&](uint32_t) { Plan(); });
    block_.Wait();
    width_bits_ = memory_.width_bits;
    height_bits_ = memory_.height_bits;
    if (width_bits_ == 0) return MakeWide(left, top, right, bottom);
    for (uint32_t x = left; x < right; x += 1u << width_bits_) {
      MakeWeights(memory_.columns, memory_.column_lines, memory_.weights, width_bits_,
                  [x, this](uint32_t i) { return Column(x + i); });
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
    memory_.columns = SharedAxis(
        MakeResizeAxis(work_.filter, box.left, box.right, sample_.width, store_.width));
    memory_.rows = SharedAxis(
        MakeResizeAxis(work_.filter, box.top, box.bottom, sample_.height, store_.height));
    ChooseParts(memory_);
  }

  SHARDPACK_HOST_DEVICE uint32_t Column(uint32_t x) const {
    x = Least(x, store_.width - 1);
    return sample_.mirror ? store_.width - 1 - x : x;
  }
  SHARDPACK_HOST_DEVICE uint32_t Row(uint32_t y) const { return Least(y, store_.height - 1); }

  // Weights of 1 << bits lines in fixed point, tap by tap, so that neighbours lie side by side.
  template <typename LineAt>
  SHARDPACK_HOST_DEVICE void MakeWeights(const TileMemory::Axis& shared, TileMemory::Line* lines,
                                         int32_t* weights, uint32_t bits, const LineAt& line_at) {
    block_.Spread(1u << bits, [&](uint32_t i) {
      const ResizeAxis axis = AxisOf(shared, work_.filter);
      const ResizeTaps taps = TapsOf(axis, line_at(i));
      double sum = 0;
      for (uint32_t k = 0; k < taps.count; ++k) {
        const double weight = TapWeight(axis, taps, k);
        memory_.unscaled[(k << bits) + i] = weight;
        sum += weight;
      }
      lines[i] = {sum, taps.first, taps.count};
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
                [top, this](uint32_t i) { return Row(top + i); });
    // Lines are in order, with a mirror the other way round.
    const TileMemory::Line& first = memory_.column_lines[sample_.mirror ? width - 1 : 0];
    const TileMemory::Line& last = memory_.column_lines[sample_.mirror ? 0 : width - 1];
    const uint32_t begin = first.first & ~3u;
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
    const uint8_t* const from = sample_.pixels + uint64_t{row} * sample_.stride_bytes;
    const uint64_t stride_bytes = sample_.stride_bytes;
    const uint32_t row_bytes = sample_.width * kChannels;
    uint32_t* const stage = memory_.stage;
    block_.SpreadRows(count, columns / 4, [=](uint32_t y, uint32_t four) {
      StageFourPixels<kChannels>(from + y * stride_bytes, row_bytes, (begin + 4 * four) * kChannels,
                                 stage + y * pitch + 4 * four);
    });
  }

  // Several rows a call, which share their weights; also rows behind the last one, whatever the
  // memory holds there: there is room for them, and nobody reads them.
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
    const uint32_t bits = width_bits_, width = 1u << bits, height = 1u << height_bits_;
    const int32_t* const weights = memory_.weights + (memory_.columns.taps << bits);
    const TileMemory::Line* const lines = memory_.row_lines;
    const uint32_t* const middle = memory_.middle;
    block_.Spread(height << (bits - 2), [=, this](uint32_t i) {
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
      StoreFourPixels<kChannels>(store_, index_, left + x, top + y, samples);
    });
  }

  // A filter that is too wide for the tables: pixel after pixel, the input's rows dealt out.
  SHARDPACK_HOST_DEVICE void MakeWide(uint32_t left, uint32_t top, uint32_t right,
                                      uint32_t bottom) {
    const ResizeAxis columns = AxisOf(memory_.columns, work_.filter);
    for (uint32_t x = left; x < right; ++x) {
      block_.Spread(1, [&](uint32_t) { MakeLine(columns, Column(x), memory_.column_lines[0]); });
      block_.Wait();
      const TileMemory::Line& column = memory_.column_lines[0];
      const ResizeTaps taps = TapsOf(columns, Column(x));
      // As far as there is room.
      block_.Spread(Least(taps.count, TileMemory::kStageWords), [&](uint32_t i) {
        memory_.stage[i] = static_cast<uint32_t>(WeightOf(columns, taps, column.sum, i));
      });
      for (uint32_t y = top; y < bottom; ++y) MakeWidePixel(columns, taps, x, y);
    }
  }

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

  static constexpr uint32_t kWideParts = 256;
  static_assert(kWideParts * kChannels <= TileMemory::kMiddleWords);

  SHARDPACK_HOST_DEVICE void MakeWidePixel(const ResizeAxis& columns, const ResizeTaps& across,
                                           uint32_t x, uint32_t y) {
    const ResizeAxis rows = AxisOf(memory_.rows, work_.filter);
    const ResizeTaps down = TapsOf(rows, y);
    block_.Spread(1, [&](uint32_t) { MakeLine(rows, y, memory_.row_lines[0]); });
    block_.Wait();
    auto* const parts = reinterpret_cast<int32_t*>(memory_.middle);
    block_.Spread(kWideParts, [&](uint32_t i) {
      const double sum = memory_.row_lines[0].sum;
      PixelSums<kChannels> sums = {};
      for (uint32_t k = i; k < down.count; k += kWideParts) {
        sums.Add(WidePixelOfRow(columns, across, down.first + k), WeightOf(rows, down, sum, k));
      }
      for (uint32_t c = 0; c < kChannels; ++c) parts[i * kChannels + c] = sums.of[c];
    });
    block_.Wait();
    block_.Spread(1, [&](uint32_t) {
      uint8_t samples[kChannels];
      for (uint32_t c = 0; c < kChannels; ++c) {
        int32_t sum = kResizeFixedHalf;
        for (uint32_t i = 0; i < kWideParts; ++i) sum += parts[i * kChannels + c];
        samples[c] = static_cast<uint8_t>(SampleOfSum(sum));
      }
      StorePixel<kChannels>(store_, index_, x, y, samples);
    });
    block_.Wait();
  }

  // An input row at one column of the result.
  SHARDPACK_HOST_DEVICE uint32_t WidePixelOfRow(const ResizeAxis& columns, const ResizeTaps& across,
                                                uint32_t y) const {
    const uint8_t* from = sample_.pixels + uint64_t{y} * sample_.stride_bytes +
                          uint64_t{across.first} * kChannels;
    PixelSums<kChannels> sums;
    sums.Begin();
    for (uint32_t k = 0; k < across.count; ++k) {
      uint32_t pixel = 0;
      for (uint32_t c = 0; c < kChannels; ++c) pixel |= uint32_t{*from++} << (8 * c);
      const int32_t weight = k < TileMemory::kStageWords
                                 ? static_cast<int32_t>(memory_.stage[k])
                                 : WeightOf(columns, across, memory_.column_lines[0].sum, k);
      sums.Add(pixel, weight);
    }
    return sums.Pixel();
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
  TileMaker<kChannels, Block>(work, sample, memory, block).Make(x * kTileWidth, y * kTileHeight);
}

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_PREPROCESS_TILE_H_

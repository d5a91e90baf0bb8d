// TileMemory: what a block of the preprocess kernel shares, and how large a part of the result it
// holds at once.
//
//   memory.columns = SharedAxis(MakeResizeAxis(filter, left, right, width, out_width));
//   memory.rows = SharedAxis(MakeResizeAxis(filter, top, bottom, height, out_height));
//   ChooseParts(memory);   // then 1 << memory.width_bits columns, 1 << memory.height_bits rows
//
// Lifetime: a plain value, about 44 KB.
// Thread-safety: that of its block.
// Units: pixels; words of 32 bits.
#ifndef SHARDPACK_CUDA_KERNELS_PREPROCESS_MEMORY_H_
#define SHARDPACK_CUDA_KERNELS_PREPROCESS_MEMORY_H_

#include <cmath>
#include <cstdint>

#include "cuda/kernels/preprocess_work.h"
#include "images/pixels/host_device.h"
#include "images/resize/resize_weights.h"

namespace shardpack {

struct TileMemory {
  static constexpr uint32_t kMiddleWords = 3840, kWeights = 1024;
  // The pitch of staged rows, if the window is not wider: a constant makes addresses cheap. And how
  // many rows a call narrows.
  static constexpr uint32_t kStagePitch = 88, kRowsACall = 8;
  static constexpr uint32_t kStageWords = 64 * kStagePitch;
  static constexpr uint32_t kMaxWidthBits = 5, kMaxHeightBits = 6;

  // The taps of a column or a row of the part, and what its weights are computed from.
  struct Line {
    double sum;
    uint32_t first, count;
  };
  // As ResizeAxis, which has initialisers and so cannot be shared.
  struct Axis {
    double first, step, shrink, support;
    uint32_t in_size, taps;
    uint32_t even_taps;  // see EvenTapsOf
  };

  union {
    alignas(16) uint32_t stage[kStageWords];
    double unscaled[kWeights];  // weights before they are divided by their sum
  };
  alignas(16) uint32_t middle[kMiddleWords];
  int32_t weights[kWeights];  // of columns, then of rows; tap by tap
  Line column_lines[1 << kMaxWidthBits], row_lines[1 << kMaxHeightBits];
  Axis columns, rows;
  // Of the part's width, at least 4, and height. Without a width the filter is too wide.
  uint32_t width_bits, height_bits;
};

SHARDPACK_HOST_DEVICE inline ResizeAxis AxisOf(const TileMemory::Axis& axis, ResizeFilter filter) {
  return {filter, axis.in_size, axis.first, axis.step, axis.shrink, axis.support};
}

SHARDPACK_HOST_DEVICE inline TileMemory::Axis SharedAxis(const ResizeAxis& axis) {
  // What a filter covers that does not meet an edge, and begins anywhere.
  const auto covered = static_cast<uint32_t>(std::ceil(2 * axis.support));
  return {axis.first,
          axis.step,
          axis.shrink,
          axis.support,
          axis.in_size,
          Least(MostTaps(axis), axis.in_size),
          Least(covered, axis.in_size)};
}

// The taps of a line, and before and after them as many without weight as make the number
// that of the other lines: threads that make neighbours then go through their loops together. All
// lie within the input, and `before` of them are in front.
struct EvenTaps {
  uint32_t first, count, before;
};

SHARDPACK_HOST_DEVICE inline EvenTaps EvenTapsOf(const TileMemory::Axis& axis,
                                                 const ResizeTaps& taps) {
  // The rounding of a line's ends may add one.
  const uint32_t count = taps.count < axis.even_taps ? axis.even_taps : taps.count;
  const uint32_t first = Least(taps.first, axis.in_size - count);
  return {first, count, taps.first - first};
}

// The most input pixels that `size` neighbours of the result need.
SHARDPACK_HOST_DEVICE inline uint32_t Span(const TileMemory::Axis& axis, uint32_t size) {
  const double span = (size - 1) * axis.step + axis.taps + 2;
  return span > axis.in_size ? axis.in_size : static_cast<uint32_t>(span);
}

// Pixels of a staged row: from and to a multiple of eight.
SHARDPACK_HOST_DEVICE inline uint32_t StageWidth(uint32_t begin, uint32_t end) {
  return (end - (begin & ~7u) + 7) & ~7u;
}

// Halves the part until it fits the memory.
SHARDPACK_HOST_DEVICE inline void ChooseParts(TileMemory& memory) {
  const TileMemory::Axis &columns = memory.columns, &rows = memory.rows;
  uint32_t width_bits = TileMemory::kMaxWidthBits;
  uint32_t height_bits = TileMemory::kMaxHeightBits;
  for (;;) {
    const uint32_t width = 1u << width_bits, height = 1u << height_bits;
    // Sizes below 2^16 and taps below 2^32: in 64 bits nothing overflows.
    const bool fits =
        uint64_t{columns.taps} * width + uint64_t{rows.taps} * height <= TileMemory::kWeights &&
        (uint64_t{Span(rows, height)} + TileMemory::kRowsACall) * width <=
            TileMemory::kMiddleWords &&
        (uint64_t{Span(columns, width)} + 14) * TileMemory::kRowsACall <= TileMemory::kStageWords;
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

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_KERNELS_PREPROCESS_MEMORY_H_

// PixelProgram: operations on single pixels that the preprocessing of a sample does before it
// stores them: tables of levels, colours, rectangles. The arithmetic is that of augment/, so the
// bytes are those of ProgramRunner.
//
//   ApplySteps<3>(program, tables, x, y, samples);   // four pixels of a row, from x on
//
// Lifetime: a plain value. Its tables are among those of all programs of a batch.
// Thread-safety: pure functions.
// Units: pixels of the result; levels of 0 to 255.
#ifndef SHARDPACK_CUDA_KERNELS_PIXEL_STEPS_H_
#define SHARDPACK_CUDA_KERNELS_PIXEL_STEPS_H_

#include <cstdint>

#include "augment/pixel_arithmetic.h"
#include "images/augment/random_numbers.h"
#include "images/pixels/host_device.h"

namespace shardpack {

enum class PixelStepKind : uint8_t { kTable, kSaturation, kHue, kGray, kErase };

struct PixelStep {
  PixelStepKind kind = PixelStepKind::kTable;
  uint32_t table = 0;     // kTable: its place among the batch's tables
  uint8_t color[3] = {};  // kErase
  // kErase: what is inside. Noise instead of the colour if `noise` is not 0, of which it is the
  // seed.
  uint32_t left = 0, top = 0, right = 0, bottom = 0;
  uint64_t noise = 0;
  float value = 0, rest = 0;  // kSaturation: the factor, 1 - it; kHue: the turn
};

struct PixelProgram {
  // Neighbouring tables are one step, so that every other step is one at most.
  static constexpr uint32_t kMaxSteps = 8, kMaxTables = kMaxSteps / 2;

  uint32_t count = 0;
  PixelStep steps[kMaxSteps] = {};
};

// What becomes of each level.
struct PixelTable {
  uint8_t of[256] = {};
};

// Operations on colours leave gray images as they are.
template <uint32_t kChannels>
SHARDPACK_HOST_DEVICE inline void ApplyColorStep(const PixelStep& step,
                                                 uint8_t (&sample)[kChannels]) {
  if constexpr (kChannels == 3) {
    float red = sample[0], green = sample[1], blue = sample[2];
    if (step.kind == PixelStepKind::kSaturation) {
      SaturatePixel(red, green, blue, step.value, step.rest);
    } else if (step.kind == PixelStepKind::kHue) {
      TurnHueOfPixel(red, green, blue, step.value);
    } else {
      GrayPixel(red, green, blue);
    }
    sample[0] = static_cast<uint8_t>(static_cast<int32_t>(red));
    sample[1] = static_cast<uint8_t>(static_cast<int32_t>(green));
    sample[2] = static_cast<uint8_t>(static_cast<int32_t>(blue));
  }
}

// The noise of a rectangle is drawn eight levels at a time, row by row.
template <uint32_t kChannels>
SHARDPACK_HOST_DEVICE inline void ErasePixel(const PixelStep& step, uint32_t x, uint32_t y,
                                             uint8_t (&sample)[kChannels]) {
  if (x < step.left || x >= step.right || y < step.top || y >= step.bottom) return;
  const uint32_t row_levels = (step.right - step.left) * kChannels;
  const uint64_t row = uint64_t{y - step.top} * ((row_levels + 7) / 8);
  for (uint32_t c = 0; c < kChannels; ++c) {
    const uint32_t level = (x - step.left) * kChannels + c;
    sample[c] = step.noise == 0
                    ? step.color[c]
                    : static_cast<uint8_t>(SampleRandom({step.noise, 0, 0, 0}, row + level / 8) >>
                                           (8 * (level % 8)));
  }
}

template <uint32_t kChannels>
SHARDPACK_HOST_DEVICE inline void ApplySteps(const PixelProgram& program, const PixelTable* tables,
                                             uint32_t x, uint32_t y,
                                             uint8_t (&samples)[4][kChannels]) {
  for (uint32_t i = 0; i < program.count; ++i) {
    const PixelStep& step = program.steps[i];
    for (uint32_t p = 0; p < 4; ++p) {
      if (step.kind == PixelStepKind::kTable) {
        const uint8_t* const table = tables[step.table].of;
        for (uint32_t c = 0; c < kChannels; ++c) samples[p][c] = table[samples[p][c]];
      } else if (step.kind == PixelStepKind::kErase) {
        ErasePixel<kChannels>(step, x + p, y, samples[p]);
      } else {
        ApplyColorStep<kChannels>(step, samples[p]);
      }
    }
  }
}

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_KERNELS_PIXEL_STEPS_H_

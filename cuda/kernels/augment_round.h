// An AugmentRound: what of a batch's augmentation needs more than one pixel: statistics of the
// image, neighbours, other places; and the operations on single pixels that follow it.
//
//   RoundLaunch round{.tails = tails, .programs = programs, .from = scratch, ...};
//   if (LaunchAugmentRound(round, stream) != 0) ...   // cudaError_t
//   AugmentRoundOnHost(round);                        // the same bytes, on the CPU
//
// Each sample has an operation of its own in a round, or none. A batch is preprocessed to levels
// (8 bits, NHWC), goes from round to round through scratch memory, and the last round normalises
// it. With `statistics` a round is three launches: histograms, tables made of them, pixels; else
// one. The arithmetic is that of augment/, so the bytes are those of ProgramRunner.
//
// Lifetime: what the launch points to lives until it has run.
// Thread-safety: any thread.
// Errors: LaunchAugmentRound gives a cudaError_t; 801 (cudaErrorNotSupported) in a build without a
// CUDA toolkit.
// Units: pixels; levels of 0 to 255.
#ifndef SHARDPACK_CUDA_KERNELS_AUGMENT_ROUND_H_
#define SHARDPACK_CUDA_KERNELS_AUGMENT_ROUND_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "cuda/kernels/pixel_steps.h"
#include "images/pixels/pixel_output.h"

namespace shardpack {

enum class TailKind : uint8_t {
  kNone,
  kPadding,  // no sample: zeros in the end
  kContrast,
  kAutocontrast,
  kEqualize,
  kSharpness,
  kWarp,
};

struct RoundTail {
  TailKind kind = TailKind::kNone;
  bool bilinear = false, perspective = false;  // of a warp
  uint8_t fill = 0;
  float factor = 0, rest = 0;  // contrast, sharpness: rest is 1 - factor
  // Of a warp: WarpMatrix, and if it is affine the WarpStep of x and y along a row.
  double matrix[9] = {};
  int64_t step_x = 0, step_y = 0;
};

struct RoundStatistics {
  uint64_t gray;  // the sum of gray levels
  uint32_t histogram[3][256];
};
struct RoundTables {
  uint8_t of[3][256];
};

struct RoundLaunch {
  // On the device, one a sample.
  const RoundTail* tails = nullptr;
  const PixelProgram* programs = nullptr;
  const PixelTable* pixel_tables = nullptr;  // of all programs
  const uint8_t* from = nullptr;             // levels
  uint32_t count = 0, channels = 3, width = 0, height = 0;
  // Room on the device, one a sample; nullptr: no tail needs statistics.
  RoundStatistics* statistics = nullptr;
  RoundTables* tables = nullptr;
  // Levels for the next round, or in this format.
  std::optional<PixelOutput> output = std::nullopt;
  void* out = nullptr;
};

// All pointers are to host memory. One thread.
void AugmentRoundOnHost(const RoundLaunch& launch);

// In the target //cuda/kernels:preprocess_cuda. `cuda_stream` is a cudaStream_t.
int LaunchAugmentRound(const RoundLaunch& launch, void* cuda_stream);

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_KERNELS_AUGMENT_ROUND_H_

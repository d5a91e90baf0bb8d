// What of an AugmentPlan a device does: within the launch that preprocesses a batch, and in rounds
// after it (AugmentRound), as many as a sample of the plan may need.
//
//   if (const std::string why = WhyNotOnDevice(plan); !why.empty()) ...   // "elastic"
//   DevicePrograms programs(RoundsOf(plan), slots, 224, 224);
//   programs.Clear();                                        // each batch
//   absl::Status set = programs.Set(slot, drawn);            // each slot: what the plan drew
//
// Within the launch, and after each round: brightness, posterize, solarize, invert, gamma,
// saturation, hue, grayscale and erase, as many as a PixelProgram has room for. Rounds: contrast,
// autocontrast, equalize, sharpness, and all warps but elastic. The host's (cpu_augment.h):
// elastic, AugMix, OpenCV's, and functions of users.
//
// Lifetime: borrows nothing.
// Thread-safety: one thread at a time.
// Errors: Internal for a program that is not of such a plan.
// Units: bytes, pixels.
#ifndef SHARDPACK_CUDA_LOADING_DEVICE_AUGMENT_H_
#define SHARDPACK_CUDA_LOADING_DEVICE_AUGMENT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "augment/plan.h"
#include "augment/program.h"
#include "cuda/kernels/augment_round.h"
#include "cuda/kernels/pixel_steps.h"

namespace shardpack {

// The names of what the host has to do of it, or that it has too many steps; empty: a device can do
// all of it.
std::string WhyNotOnDevice(const AugmentPlan& plan);

// How many rounds every batch gets, and whether some need statistics.
size_t RoundsOf(const AugmentPlan& plan);
bool NeedsStatistics(const AugmentPlan& plan);

// Memory that the rounds of a batch go through: what lies where.
struct RoundScratch {
  RoundScratch() = default;
  // `level_bytes`: of a batch, one a number.
  RoundScratch(const AugmentPlan& plan, size_t slots, size_t level_bytes);

  size_t bytes = 0;                      // 0: no rounds
  std::array<size_t, 2> levels_at = {};  // the second one with several rounds
  bool has_statistics = false;
  size_t statistics_at = 0, tables_at = 0;
};

class DevicePrograms {
 public:
  DevicePrograms(size_t rounds, size_t slots, uint32_t width, uint32_t height);

  // Before the first slot of a batch.
  void Clear() { tables_.clear(); }
  absl::Status Set(size_t slot, const SampleProgram& program);
  void SetPadding(size_t slot);

  // Of each slot, then of the next round: programs()[0], tails()[0], programs()[slots] ...
  std::span<const PixelProgram> programs() const { return programs_; }
  std::span<const RoundTail> tails() const { return tails_; }
  std::span<const PixelTable> tables() const { return tables_; }  // in use

 private:
  void Reset(size_t slot);
  absl::Status AddStep(const Operation& operation, PixelProgram& made);
  absl::Status FlushTables(PixelProgram& made);

  const size_t rounds_, slots_;
  const uint32_t width_, height_;
  std::vector<PixelProgram> programs_;
  std::vector<RoundTail> tails_;
  std::vector<PixelTable> tables_;
  SampleProgram joined_;  // neighbouring tables
  ProgramRunner runner_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_LOADING_DEVICE_AUGMENT_H_

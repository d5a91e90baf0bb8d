// What of an AugmentPlan a device does within the launch that preprocesses a batch, and the same on
// the CPU for plans that it cannot do.
//
//   if (const std::string why = WhyNotOnDevice(plan); !why.empty()) ...   // "contrast"
//   DeviceProgram program = DeviceProgramOf(drawn, RoundsOf(plan), 224, 224);   // of what it drew
//   absl::Status done = PreprocessAugmented(launch, plan, samples, describe, threads);   // on the CPU
//
// Done within that launch: brightness, posterize, solarize, invert, gamma, saturation, hue,
// grayscale and erase, as far as a program has room (PixelProgram). In rounds after it
// (AugmentRound), as many as a sample of the plan may need: contrast, autocontrast, equalize,
// sharpness, and all warps but elastic. The host's: elastic, OpenCV's, and functions of users.
//
// Lifetime: borrows nothing.
//
// Thread-safety: pure functions.
//
// Errors: those of ProgramRunner and of PreprocessByThreads.
#ifndef SHARDPACK_CUDA_LOADING_DEVICE_AUGMENT_H_
#define SHARDPACK_CUDA_LOADING_DEVICE_AUGMENT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "augment/plan.h"
#include "augment/program.h"
#include "cuda/kernels/augment_round.h"
#include "cuda/kernels/preprocess.h"
#include "images/augment/random_numbers.h"

namespace shardpack {

// The names of what the host has to do of it, or that it has too many steps; empty: a device can do
// all of it.
std::string WhyNotOnDevice(const AugmentPlan& plan);

// How many rounds every batch gets, and whether some need statistics.
size_t RoundsOf(const AugmentPlan& plan);
bool NeedsStatistics(const AugmentPlan& plan);

// What is done to a sample: programs[0], tails[0], programs[1] ...
struct DeviceProgram {
  std::vector<PixelProgram> programs;  // one more than rounds
  std::vector<RoundTail> tails;
};
// Of a program that a plan has drawn for this size, with its number of rounds.
DeviceProgram DeviceProgramOf(const SampleProgram& program, size_t rounds, uint32_t width,
                              uint32_t height);

// As PreprocessByThreads, with what the plan draws for each sample; nullopt is padding. The error
// of a sample, of an operation of a user say, begins with `describe` of its id.
absl::Status PreprocessAugmented(const PreprocessLaunch& launch, const AugmentPlan& plan,
                                 std::span<const std::optional<SampleIdentity>> samples,
                                 const std::function<std::string(uint64_t id)>& describe,
                                 int threads);

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_LOADING_DEVICE_AUGMENT_H_

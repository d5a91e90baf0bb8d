// StepSource: where a launch finds what it takes, in device memory, so that a launch that is part
// of a CUDA graph takes something else each time it is run.
//
//   launch.source = source;     // on the device; instead of rows, samples and labels
//
// Lifetime: what it names lives until the launch has run.
// Thread-safety: a plain value.
#ifndef SHARDPACK_CUDA_KERNELS_STEP_SOURCE_H_
#define SHARDPACK_CUDA_KERNELS_STEP_SOURCE_H_

#include <cstdint>

namespace shardpack {

struct PreprocessSample;

// One a slot each; nullptr: not wanted.
struct StepSource {
  const uint64_t* rows = nullptr;
  const PreprocessSample* samples = nullptr;
  const int64_t* labels = nullptr;
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_KERNELS_STEP_SOURCE_H_

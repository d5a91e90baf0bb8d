// GatherOnHost: copies rows of a table to a batch, as the kernel does on the device.
//
//   GatherOnHost({.table = table, .rows = rows, .count = 64, .row_bytes = 3072, .out = batch});
//
// Lifetime: what the launch points to lives until it has run.
// Thread-safety: any thread.
// Units: bytes.
#ifndef SHARDPACK_CUDA_KERNELS_GATHER_H_
#define SHARDPACK_CUDA_KERNELS_GATHER_H_

#include <cstdint>

#include "cuda/kernels/step_source.h"

namespace shardpack {

// Copies rows of a table in device memory to a batch, and their labels.
struct GatherLaunch {
  const uint8_t* table = nullptr;  // device
  const uint64_t* rows = nullptr;  // device; kNoRow: zeros
  uint32_t count = 0;
  uint64_t row_bytes = 0;
  uint8_t* out = nullptr;  // device, count * row_bytes
  // On the device, one a row, copied to out_labels; nullptr: none are.
  const int64_t* labels = nullptr;
  int64_t* out_labels = nullptr;
  // On the device, read when the launch runs: rows and labels are those that it names; labels are
  // copied if there are out_labels.
  const StepSource* source = nullptr;
};
inline constexpr uint64_t kNoRow = ~uint64_t{0};
// The same on the CPU; all pointers are readable by the host.
void GatherOnHost(const GatherLaunch& given);

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_KERNELS_GATHER_H_

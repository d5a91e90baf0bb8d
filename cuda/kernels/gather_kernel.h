// LaunchGather: runs a GatherLaunch on the device; in the target //cuda/kernels:gather_cuda.
//
//   if (LaunchGather(launch, stream) != 0) ...   // cudaError_t
//
// Lifetime: what the launch points to lives until it has run.
// Thread-safety: any thread.
// Errors: a cudaError_t.
// Units: bytes.
#ifndef SHARDPACK_CUDA_KERNELS_GATHER_KERNEL_H_
#define SHARDPACK_CUDA_KERNELS_GATHER_KERNEL_H_

#include "cuda/kernels/gather.h"

namespace shardpack {

int LaunchGather(const GatherLaunch& launch, void* cuda_stream);

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_KERNELS_GATHER_KERNEL_H_

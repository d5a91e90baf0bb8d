// The preprocess kernel: the code of preprocess_tile.h with a block of threads for each tile.
#include <cuda_runtime_api.h>

#include <climits>

#include "cuda/kernels/preprocess.h"
#include "cuda/kernels/preprocess_tile.h"
#include "cuda/kernels/preprocess_work.h"

namespace shardpack {
namespace {

constexpr uint32_t kThreads = 256;

struct CudaBlock {
  template <typename F>
  __device__ void Spread(uint32_t count, const F& f) const {
    for (uint32_t i = threadIdx.x; i < count; i += kThreads) f(i);
  }
  template <typename F>
  __device__ void SpreadRows(uint32_t rows, uint32_t columns, const F& f) const {
    uint32_t y = threadIdx.x / columns, x = threadIdx.x - y * columns;
    const uint32_t down = kThreads / columns, across = kThreads - down * columns;
    while (y < rows) {
      f(y, x);
      x += across;
      y += down;
      if (x >= columns) {
        x -= columns;
        ++y;
      }
    }
  }
  __device__ void Wait() const { __syncthreads(); }
};

template <uint32_t kChannels>
__global__ void __launch_bounds__(kThreads, 4)
    PreprocessKernel(const __grid_constant__ PreprocessWork work) {
  __shared__ TileMemory memory;
  PreprocessTile<kChannels>(work, blockIdx.x, memory, CudaBlock());
}

const void* KernelOf(uint32_t channels) {
  return channels == 1 ? reinterpret_cast<const void*>(&PreprocessKernel<1>)
                       : reinterpret_cast<const void*>(&PreprocessKernel<3>);
}

// Of a multiprocessor's memory as much as there is becomes shared, not cache: blocks are limited by
// it. Remembered by the driver, for each device; cheap, and without effect where it was done.
cudaError_t PreferShared(const void* kernel) {
  return cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                              cudaSharedmemCarveoutMaxShared);
}

}  // namespace

PreprocessOccupancy MeasurePreprocess(uint32_t channels) {
  PreprocessOccupancy found;
  const void* const kernel = KernelOf(channels);
  cudaFuncAttributes attributes = {};
  cudaError_t error = PreferShared(kernel);
  if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, kernel);
  if (error == cudaSuccess) {
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&found.blocks, kernel, kThreads, 0);
  }
  found.error = error;
  found.registers = attributes.numRegs;
  found.shared_bytes = attributes.sharedSizeBytes;
  return found;
}

int LaunchPreprocess(const PreprocessLaunch& launch, void* cuda_stream) {
  if (!CheckPreprocess(launch).ok()) return cudaErrorInvalidValue;
  PreprocessWork work = MakePreprocessWork(launch);
  const uint64_t tiles = TileCount(work);
  if (tiles == 0) return cudaSuccess;
  if (tiles > INT_MAX) return cudaErrorInvalidValue;
  const void* const kernel = KernelOf(launch.channels);
  if (const cudaError_t error = PreferShared(kernel)) return error;
  void* arguments[] = {&work};
  return cudaLaunchKernel(kernel, dim3(static_cast<uint32_t>(tiles)), dim3(kThreads), arguments, 0,
                          static_cast<cudaStream_t>(cuda_stream));
}

}  // namespace shardpack

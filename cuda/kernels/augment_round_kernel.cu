// The kernels of an AugmentRound: the code of augment_round_pixels.h, a block for some rows of an
// image, and a block for an image's tables.
#include <cuda_runtime_api.h>

#include <climits>

#include "cuda/kernels/augment_round.h"
#include "cuda/kernels/augment_round_pixels.h"

namespace shardpack {
namespace {

constexpr uint32_t kThreads = 256, kRowsABlock = 16;

// The images' parts of some rows lie one after the other along x, of which a grid has 2^31.
__host__ __device__ inline uint32_t PartsOf(uint32_t height) {
  return (height + kRowsABlock - 1) / kRowsABlock;
}

struct RowsOfBlock {
  uint32_t image, top, rows;
};
__device__ inline RowsOfBlock RowsOf(const RoundWork& work) {
  const uint32_t parts = PartsOf(work.store.height), image = blockIdx.x / parts;
  const uint32_t top = (blockIdx.x - image * parts) * kRowsABlock;
  return {image, top, min(kRowsABlock, work.store.height - top)};
}

template <uint32_t kChannels>
__global__ void CountKernel(const __grid_constant__ RoundWork work) {
  __shared__ uint32_t histogram[kChannels][256];
  __shared__ unsigned long long gray;
  const RowsOfBlock at = RowsOf(work);
  if (!NeedsStatistics(work.tails[at.image].kind)) return;
  for (uint32_t i = threadIdx.x; i < kChannels * 256; i += kThreads)
    histogram[i / 256][i % 256] = 0;
  if (threadIdx.x == 0) gray = 0;
  __syncthreads();
  unsigned long long sum = 0;
  for (uint32_t i = threadIdx.x; i < at.rows * work.store.width; i += kThreads) {
    const uint32_t y = i / work.store.width, x = i - y * work.store.width;
    CountPixel<kChannels>(
        work, at.image, x, at.top + y,
        [&](uint32_t c, uint8_t level) { atomicAdd(&histogram[c][level], 1u); },
        [&](uint32_t level) { sum += level; });
  }
  if (sum != 0) atomicAdd(&gray, sum);
  __syncthreads();
  RoundStatistics& all = work.statistics[at.image];
  for (uint32_t i = threadIdx.x; i < kChannels * 256; i += kThreads) {
    const uint32_t count = histogram[i / 256][i % 256];
    if (count != 0) atomicAdd(&all.histogram[i / 256][i % 256], count);
  }
  if (threadIdx.x == 0 && gray != 0)
    atomicAdd(reinterpret_cast<unsigned long long*>(&all.gray), gray);
}

__global__ void TablesKernel(const __grid_constant__ RoundWork work, uint32_t channels) {
  const uint32_t image = blockIdx.x;
  if (!NeedsStatistics(work.tails[image].kind)) return;
  for (uint32_t c = 0; c < channels; ++c)
    work.tables[image].of[c][threadIdx.x] = RoundTableLevel(work, image, c, threadIdx.x);
}

template <uint32_t kChannels>
__global__ void MoveKernel(const __grid_constant__ RoundWork work) {
  __shared__ WarpRow warp_rows[kRowsABlock];
  const RowsOfBlock at = RowsOf(work);
  if (threadIdx.x < at.rows)
    warp_rows[threadIdx.x] = WarpRowOf(work.tails[at.image], at.top + threadIdx.x);
  __syncthreads();
  const uint32_t fours = (work.store.width + 3) / 4;
  for (uint32_t i = threadIdx.x; i < at.rows * fours; i += kThreads) {
    const uint32_t y = i / fours;
    MoveFourPixels<kChannels>(work, at.image, 4 * (i - y * fours), at.top + y, warp_rows[y]);
  }
}

const void* CountOf(uint32_t channels) {
  return channels == 1 ? reinterpret_cast<const void*>(&CountKernel<1>)
                       : reinterpret_cast<const void*>(&CountKernel<3>);
}
const void* MoveOf(uint32_t channels) {
  return channels == 1 ? reinterpret_cast<const void*>(&MoveKernel<1>)
                       : reinterpret_cast<const void*>(&MoveKernel<3>);
}

}  // namespace

int LaunchAugmentRound(const RoundLaunch& launch, void* cuda_stream) {
  if (launch.count == 0) return cudaSuccess;
  if (launch.width == 0 || launch.height == 0) return cudaErrorInvalidValue;
  const uint64_t blocks = uint64_t{PartsOf(launch.height)} * launch.count;
  if (blocks > INT_MAX) return cudaErrorInvalidValue;
  const auto stream = static_cast<cudaStream_t>(cuda_stream);
  RoundWork work = MakeRoundWork(launch);
  uint32_t channels = launch.channels;
  const dim3 grid(static_cast<uint32_t>(blocks));
  void* arguments[] = {&work, &channels};
  if (launch.statistics != nullptr) {
    cudaError_t error =
        cudaMemsetAsync(launch.statistics, 0, launch.count * sizeof(RoundStatistics), stream);
    if (error == cudaSuccess)
      error = cudaLaunchKernel(CountOf(channels), grid, dim3(kThreads), arguments, 0, stream);
    if (error == cudaSuccess) {
      error = cudaLaunchKernel(reinterpret_cast<const void*>(&TablesKernel), dim3(launch.count),
                               dim3(256), arguments, 0, stream);
    }
    if (error != cudaSuccess) return error;
  }
  return cudaLaunchKernel(MoveOf(channels), grid, dim3(kThreads), arguments, 0, stream);
}

}  // namespace shardpack

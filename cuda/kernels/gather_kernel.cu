// Copies rows of a table to a batch: blocks take parts of rows, by 16 bytes if rows are aligned to
// that.
#include <cuda_runtime_api.h>

#include "cuda/kernels/gather_kernel.h"

namespace shardpack {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint64_t kNone = ~uint64_t{0};
static_assert(kNone == kNoRow);

template <typename Word>
__global__ void Gather(const GatherLaunch launch) {
  const bool named = launch.source != nullptr;
  const uint64_t row = (named ? launch.source->rows : launch.rows)[blockIdx.x];
  const int64_t* const labels = named ? launch.source->labels : launch.labels;
  if (labels != nullptr && launch.out_labels != nullptr && blockIdx.y == 0 && threadIdx.x == 0) {
    launch.out_labels[blockIdx.x] = labels[blockIdx.x];
  }
  const uint64_t words = launch.row_bytes / sizeof(Word);
  const Word* const from = reinterpret_cast<const Word*>(launch.table + row * launch.row_bytes);
  Word* const to = reinterpret_cast<Word*>(launch.out + blockIdx.x * launch.row_bytes);
  for (uint64_t i = uint64_t{blockIdx.y} * kThreads + threadIdx.x; i < words;
       i += uint64_t{gridDim.y} * kThreads) {
    to[i] = row == kNone ? Word{} : from[i];
  }
}

bool Aligned(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0; }

}  // namespace

int LaunchGather(const GatherLaunch& launch, void* cuda_stream) {
  if (launch.count == 0 || launch.row_bytes == 0) return cudaSuccess;
  const auto stream = static_cast<cudaStream_t>(cuda_stream);
  const bool wide = launch.row_bytes % 16 == 0 && Aligned(launch.table) && Aligned(launch.out);
  const uint64_t words = launch.row_bytes / (wide ? 16 : 1);
  const uint64_t parts = (words + kThreads * 4 - 1) / (kThreads * 4);
  const dim3 grid(launch.count, static_cast<uint32_t>(parts < 64 ? parts : 64));
  const void* const kernel = wide ? reinterpret_cast<const void*>(&Gather<uint4>)
                                  : reinterpret_cast<const void*>(&Gather<uint8_t>);
  void* arguments[] = {const_cast<GatherLaunch*>(&launch)};
  // Not <<<>>>: its error comes from cudaGetLastError, which may return that of an earlier call.
  return cudaLaunchKernel(kernel, grid, dim3(kThreads), arguments, 0, stream);
}

}  // namespace shardpack

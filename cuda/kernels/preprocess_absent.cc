// What stands in for the kernels of batches in a build without a CUDA toolkit.
#include "cuda/kernels/augment_round.h"
#include "cuda/kernels/preprocess.h"

namespace shardpack {

constexpr int kNotSupported = 801;  // cudaErrorNotSupported

int LaunchPreprocess(const PreprocessLaunch&, void*) { return kNotSupported; }

int LaunchAugmentRound(const RoundLaunch&, void*) { return kNotSupported; }

PreprocessOccupancy MeasurePreprocess(uint32_t) { return {.error = kNotSupported}; }

}  // namespace shardpack

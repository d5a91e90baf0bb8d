// What stands in for the preprocess kernel in a build without a CUDA toolkit.
#include "cuda/kernels/preprocess.h"

namespace shardpack {

constexpr int kNotSupported = 801;  // cudaErrorNotSupported

int LaunchPreprocess(const PreprocessLaunch&, void*) { return kNotSupported; }

PreprocessOccupancy MeasurePreprocess(uint32_t) { return {.error = kNotSupported}; }

}  // namespace shardpack

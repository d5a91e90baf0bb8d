// What stands in for the preprocess kernel in a build without a CUDA toolkit.
#include "cuda/kernels/preprocess.h"

namespace shardpack {

int LaunchPreprocess(const PreprocessLaunch&, void*) {
  return 801;  // cudaErrorNotSupported
}

}  // namespace shardpack

// Of a build without a toolkit.
#include "cuda/device/cuda_api.h"

namespace shardpack {

absl::StatusOr<const DeviceApi*> CudaDeviceApi(int) {
  return absl::UnimplementedError(
      "this program was built without CUDA: no toolkit was found ($CUDA_HOME, /usr/local/cuda)");
}

}  // namespace shardpack

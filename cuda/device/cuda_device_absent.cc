// For a build without a toolkit.
#include "cuda/device/cuda_device.h"

namespace shardpack {

absl::StatusOr<Device*> OpenCudaDevice(int) {
  return absl::UnimplementedError(
      "this program was built without CUDA: no toolkit was found ($CUDA_HOME, /usr/local/cuda)");
}

}  // namespace shardpack

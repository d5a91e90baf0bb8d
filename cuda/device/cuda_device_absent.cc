// For a build without a toolkit.
#include "cuda/device/cuda_device.h"

namespace shardpack {

absl::StatusOr<Device*> OpenCudaDevice(int) {
  return absl::UnimplementedError(
      "Shardpack was built without CUDA here: there was no CUDA toolkit when it was compiled");
}

}  // namespace shardpack

#include "cuda/cuda_api.h"
#include "cuda/test_device.h"

namespace shardpack {

TestDevice::TestDevice(const FakeOptions&) {
  const absl::StatusOr<const DeviceApi*> api = CudaDeviceApi(0);
  if (api.ok()) {
    api_ = *api;
  } else {
    why_ = std::string(api.status().message());
  }
}

}  // namespace shardpack

#include "cuda/device/cuda_api.h"
#include "cuda/testing/fake_nvjpeg.h"
#include "cuda/testing/test_device.h"

namespace shardpack {

TestDevice::TestDevice(const FakeOptions&) {
  const absl::StatusOr<const DeviceApi*> api = CudaDeviceApi(0);
  if (api.ok()) {
    api_ = *api;
  } else {
    why_ = std::string(api.status().message());
  }
}
TestDevice::~TestDevice() = default;

const NvjpegFunctions* TestDevice::nvjpeg() const { return nullptr; }

bool TestDevice::should_have_engines() const {
  DeviceInfo info;
  if (!api_->info(api_->self, &info).ok()) return false;
  const int capability = info.major * 10 + info.minor;
  return capability == 80 || capability >= 89;
}

}  // namespace shardpack

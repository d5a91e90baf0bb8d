#include "cuda/device/cuda_device.h"
#include "cuda/testing/fake_nvjpeg.h"
#include "cuda/testing/test_device.h"

namespace shardpack {

TestDevice::TestDevice(const FakeOptions&) {
  const absl::StatusOr<Device*> gpu = OpenCudaDevice(0);
  if (gpu.ok()) {
    device_ = *gpu;
  } else {
    why_ = std::string(gpu.status().message());
  }
}
TestDevice::~TestDevice() = default;

const NvjpegFunctions* TestDevice::nvjpeg() const { return nullptr; }

bool TestDevice::should_have_engines() const {
  const absl::StatusOr<DeviceInfo> info = device_->Info();
  if (!info.ok()) return false;
  const int capability = info->major * 10 + info->minor;
  return capability == 80 || capability >= 89;
}

}  // namespace shardpack

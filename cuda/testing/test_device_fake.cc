#include "cuda/testing/fake_nvjpeg.h"
#include "cuda/testing/test_device.h"

namespace shardpack {

TestDevice::TestDevice(const FakeOptions& options)
    : fake_(std::make_unique<FakeDevice>(options)),
      fake_nvjpeg_(std::make_unique<FakeNvjpeg>(FakeNvjpegOptions(), fake_.get())),
      device_(fake_.get()) {}
TestDevice::~TestDevice() = default;

const NvjpegFunctions* TestDevice::nvjpeg() const { return &fake_nvjpeg_->functions(); }
bool TestDevice::should_have_engines() const { return true; }

}  // namespace shardpack

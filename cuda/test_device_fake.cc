#include "cuda/test_device.h"

namespace shardpack {

TestDevice::TestDevice(const FakeOptions& options)
    : fake_(std::make_unique<FakeApi>(options)), api_(&fake_->api()) {}

}  // namespace shardpack

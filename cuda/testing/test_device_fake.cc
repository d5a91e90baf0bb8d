#include <cstdlib>
#include <functional>

#include "cuda/testing/fake_nvjpeg.h"
#include "cuda/testing/test_device.h"

namespace shardpack {

TestDevice::TestDevice(const FakeOptions& options)
    : fake_(std::make_unique<FakeDevice>(options)),
      fake_nvjpeg_(std::make_unique<FakeNvjpeg>(FakeNvjpegOptions(), fake_.get())),
      device_(fake_.get()) {}
TestDevice::~TestDevice() = default;

std::function<void()> TestDevice::Capture(Stream stream, const std::function<void()>& enqueue) {
  FakeDevice::Graph graph;
  fake_->BeginCapture(stream);
  enqueue();
  if (!fake_->EndCapture(stream, &graph)) std::abort();
  return [this, stream, graph] { fake_->LaunchGraph(graph, stream); };
}

const NvjpegFunctions* TestDevice::nvjpeg() const { return &fake_nvjpeg_->functions(); }
bool TestDevice::should_have_engines() const { return true; }

}  // namespace shardpack

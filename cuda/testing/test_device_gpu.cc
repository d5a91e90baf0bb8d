#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>

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

std::function<void()> TestDevice::Capture(Stream stream, const std::function<void()>& enqueue) {
  const auto must = [](cudaError_t error) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
    std::abort();
  };
  const auto on = reinterpret_cast<cudaStream_t>(stream);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t made = nullptr;
  must(cudaStreamBeginCapture(on, cudaStreamCaptureModeGlobal));
  enqueue();
  must(cudaStreamEndCapture(on, &graph));
  must(cudaGraphInstantiateWithFlags(&made, graph, 0));
  must(cudaGraphDestroy(graph));
  const std::shared_ptr<CUgraphExec_st> owned(made, cudaGraphExecDestroy);
  return [owned, on, must] { must(cudaGraphLaunch(owned.get(), on)); };
}

const NvjpegFunctions* TestDevice::nvjpeg() const { return nullptr; }

bool TestDevice::should_have_engines() const {
  const absl::StatusOr<DeviceInfo> info = device_->Info();
  if (!info.ok()) return false;
  const int capability = info->major * 10 + info->minor;
  return capability == 80 || capability >= 89;
}

}  // namespace shardpack

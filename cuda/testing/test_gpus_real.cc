#include <cuda_runtime_api.h>

#include <cstdlib>
#include <thread>

#include "cuda/testing/test_gpus.h"

namespace shardpack {

bool GpusAreFake() { return false; }
std::vector<std::string> GpuMisuses() { return {}; }
int TakeLastCudaError() { return cudaGetLastError(); }

bool IsCaptureLeftAlone(int gpu, const std::function<void()>& others) {
  bool alone = false;
  std::thread([&] {
    cudaStream_t stream = nullptr;
    cudaGraph_t graph = nullptr;
    if (cudaSetDevice(gpu) != cudaSuccess ||
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess ||
        cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) != cudaSuccess) {
      return;
    }
    std::thread(others).join();
    alone = cudaStreamEndCapture(stream, &graph) == cudaSuccess;
    if (graph != nullptr) (void)cudaGraphDestroy(graph);
    (void)cudaStreamDestroy(stream);
  }).join();
  return alone;
}

const NvjpegFunctions* NvjpegOfLastGpu() { return nullptr; }
void FailCudaStart(int, int) { std::abort(); }

}  // namespace shardpack

// What tests of OpenCudaDevice run on: four fake GPUs with a fake CUDA runtime and driver
// (cuda/testing/fake_cudart.cc), or the GPUs of this machine (cuda/testing/test_gpus_real.cc).
//
//   if (GpusAreFake()) FailCudaStart(cudaErrorNoDevice, 13000);
//
// Two targets implement it, :cuda_device_on_fake and :test_gpus_real, so that the same sources are
// tests of both. The fake knows about contexts: which GPUs have one, which one is current in each
// thread, that a call without one makes one on GPU 0, and that a stream is used where it was
// made.
//
// Thread-safety: any thread.
#ifndef SHARDPACK_CUDA_TESTING_TEST_GPUS_H_
#define SHARDPACK_CUDA_TESTING_TEST_GPUS_H_

#include <functional>
#include <string>
#include <vector>

namespace shardpack {

struct NvjpegFunctions;

bool GpusAreFake();
// What was done wrong on the fakes so far.
std::vector<std::string> GpuMisuses();
// What cudaGetLastError returns on this thread.
int TakeLastCudaError();
// Runs `others` in a thread of its own, while a thread captures a graph on a stream of this GPU in
// the strictest mode, as torch.cuda.graph does: whether the capture could be ended.
bool IsCaptureLeftAlone(int gpu, const std::function<void()>& others);
// For DeviceDecode::nvjpeg: of the one fake GPU that has an nvJPEG, the last one, and for which
// each call from a thread where another context is current, or none, is a misuse; nullptr, which is
// the machine's own, on GPUs.
const NvjpegFunctions* NvjpegOfLastGpu();
// CUDA returns this when it is asked for GPUs, until it is set to 0; on the fakes alone.
void FailCudaStart(int code, int driver_version);

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_TESTING_TEST_GPUS_H_

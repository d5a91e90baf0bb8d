// A CUDA runtime and driver with four GPUs, each a FakeDevice, for cuda_device.cc to be linked
// with: the functions that it calls and no others. What is modelled is which context a call goes
// to.
#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cuda/dynload/cuda_driver.h"
#include "cuda/kernels/gather_kernel.h"
#include "cuda/testing/fake_device.h"
#include "cuda/testing/fake_nvjpeg.h"
#include "cuda/testing/test_gpus.h"

namespace shardpack {
namespace {

constexpr int kGpus = 4;

struct Gpu {
  FakeDevice device{{.max_delay_us = 50, .device_cap_bytes = uint64_t{8} << 30}};
  std::atomic<bool> active{false};  // has a context
};

std::array<Gpu, kGpus>& Gpus() {
  static std::array<Gpu, kGpus> gpus;
  return gpus;
}

thread_local std::vector<Gpu*> contexts;  // the last one is current

FakeNvjpeg& Nvjpeg() {
  static FakeNvjpeg nvjpeg(
      {.parse_us = 500,  // so that all threads are given some
       .is_current = [] { return !contexts.empty() && contexts.back() == &Gpus().back(); }},
      &Gpus().back().device);
  return nvjpeg;
}

std::atomic<int> start_error{0}, driver_version{13000};
thread_local cudaError_t last_error = cudaSuccess;
thread_local cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;
std::atomic<bool> captures{false}, capture_broken{false};  // in another thread, in the global mode

// As the runtime does it in a thread that has chosen nothing.
Gpu& Here() {
  if (contexts.empty()) contexts.push_back(&Gpus()[0]);
  contexts.back()->active.store(true);
  return *contexts.back();
}

cudaError_t Keep(int code) {
  if (code != 0) last_error = static_cast<cudaError_t>(code);
  return static_cast<cudaError_t>(code);
}

// The number of the error that the fake gives: "... (error 2)...".
cudaError_t Keep(const absl::Status& status) {
  if (status.ok()) return cudaSuccess;
  constexpr std::string_view kBefore = "(error ";
  const std::string message(status.message());
  return Keep(std::stoi(message.substr(message.rfind(kBefore) + kBefore.size())));
}

template <typename Value, typename To>
cudaError_t Keep(const absl::StatusOr<Value>& value, To* to) {
  if (value.ok()) *to = reinterpret_cast<To>(*value);
  return Keep(value.status());
}

cudaError_t KeepDone(const absl::StatusOr<bool>& done) {
  if (!done.ok()) return Keep(done.status());
  return Keep(*done ? cudaSuccess : cudaErrorNotReady);
}

FakeDevice& Current() { return Here().device; }

// Calls that could be wrong within a capture, as the runtime treats them: it takes those of all
// threads for a part of it whose mode does not say otherwise.
cudaError_t Unsafe() {
  if (!captures.load() || capture_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  capture_broken.store(true);
  return Keep(cudaErrorStreamCaptureUnsupported);
}

Stream Of(cudaStream_t stream) { return reinterpret_cast<Stream>(stream); }
Event Of(cudaEvent_t event) { return reinterpret_cast<Event>(event); }

}  // namespace

bool GpusAreFake() { return true; }

std::vector<std::string> GpuMisuses() {
  std::vector<std::string> all;
  for (int i = 0; i < kGpus; ++i) {
    Gpus()[i].device.JoinDestroyed();
    for (const std::string& misuse : Gpus()[i].device.misuses())
      all.push_back(absl::StrCat("GPU ", i, ": ", misuse));
  }
  if (const int64_t misuses = Nvjpeg().misuses(); misuses > 0)
    all.push_back(absl::StrCat(misuses, " times that nvJPEG was used wrongly"));
  return all;
}

const NvjpegFunctions* NvjpegOfLastGpu() { return &Nvjpeg().functions(); }

int TakeLastCudaError() { return cudaGetLastError(); }

bool IsCaptureLeftAlone(int, const std::function<void()>& others) {
  capture_broken.store(false);
  captures.store(true);
  std::thread(others).join();
  captures.store(false);
  return !capture_broken.load();
}

void FailCudaStart(int code, int driver) {
  start_error.store(code);
  driver_version.store(driver);
}

absl::StatusOr<CudaDriver> OpenCudaDriver(const std::string&) {
  CudaDriver driver;
  driver.init = [](unsigned) { return start_error.load(); };
  driver.count = [](int* count) {
    *count = kGpus;
    return 0;
  };
  driver.get = [](int* device, int ordinal) {
    *device = ordinal;
    return 0;
  };
  driver.primary = [](CudaDriver::Context* context, int device) {
    Gpu& gpu = Gpus()[device];
    gpu.active.store(true);
    *context = &gpu;
    return 0;
  };
  driver.primary_state = [](int device, unsigned* flags, int* active) {
    *flags = 0;
    *active = Gpus()[device].active.load() ? 1 : 0;
    return 0;
  };
  driver.push = [](CudaDriver::Context context) {
    contexts.push_back(static_cast<Gpu*>(context));
    return 0;
  };
  driver.pop = [](CudaDriver::Context* context) {
    if (contexts.empty()) return static_cast<int>(cudaErrorDeviceUninitialized);
    *context = contexts.back();
    contexts.pop_back();
    return 0;
  };
  driver.current = [](CudaDriver::Context* context) {
    *context = contexts.empty() ? nullptr : contexts.back();
    return 0;
  };
  return driver;
}

int LaunchPreprocess(const PreprocessLaunch& launch, void* stream) {
  return Keep(Current().Preprocess(launch, static_cast<Stream>(stream)));
}
int LaunchAugmentRound(const RoundLaunch& launch, void* stream) {
  return Keep(Current().AugmentRound(launch, static_cast<Stream>(stream)));
}
int LaunchGather(const GatherLaunch& launch, void* stream) {
  return Keep(Current().Gather(launch, static_cast<Stream>(stream)));
}

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = kGpus;
  return Keep(start_error.load());
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = driver_version.load();
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = contexts.empty() ? 0 : static_cast<int>(contexts.back() - Gpus().data());
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= kGpus) return Keep(cudaErrorInvalidDevice);
  if (!contexts.empty()) contexts.pop_back();
  contexts.push_back(&Gpus()[device]);
  (void)Here();
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, capture_mode);
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}
const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaErrorInitializationError:
      return "cudaErrorInitializationError";
    case cudaErrorInsufficientDriver:
      return "cudaErrorInsufficientDriver";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    default:
      return "cudaErrorOfTheFake";
  }
}
const char* cudaGetErrorString(cudaError_t) { return "in words"; }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  *properties = {};
  std::strcpy(properties->name, "Fake GPU");
  properties->totalGlobalMem = size_t{8} << 30;
  properties->major = 9;
  return device < kGpus ? cudaSuccess : Keep(cudaErrorInvalidDevice);
}
cudaError_t cudaDeviceGetPCIBusId(char* id, int bytes, int) {
  std::strncpy(id, "0000:01:00.0", static_cast<size_t>(bytes));
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  if (attribute == cudaDevAttrMemoryPoolsSupported) {
    *value = 1;
    return cudaSuccess;
  }
  return Keep(cudaErrorInvalidValue);
}
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  const absl::StatusOr<DeviceMemory> memory = Current().Memory();
  if (!memory.ok()) return Keep(memory.status());
  *free_bytes = memory->free_bytes;
  *total_bytes = memory->total_bytes;
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* memory) {
  const absl::StatusOr<bool> pinned = Current().IsPinned(memory);
  if (!pinned.ok()) return Keep(pinned.status());
  attributes->type = *pinned ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void* memory, size_t bytes, unsigned) {
  if (Unsafe() != cudaSuccess) return cudaErrorStreamCaptureUnsupported;
  return Keep(Current().RegisterHost(memory, bytes));
}
cudaError_t cudaHostUnregister(void* memory) { return Keep(Current().UnregisterHost(memory)); }
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  return Keep(Current().AllocateHost(bytes), memory);
}
cudaError_t cudaFreeHost(void* memory) { return Keep(Current().FreeHost(memory)); }
cudaError_t cudaMalloc(void** memory, size_t bytes) {
  if (Unsafe() != cudaSuccess) return cudaErrorStreamCaptureUnsupported;
  return Keep(Current().Allocate(bytes, "a test"), memory);
}
cudaError_t cudaFree(void* memory) {
  if (Unsafe() != cudaSuccess) return cudaErrorStreamCaptureUnsupported;
  return Keep(Current().Free(memory));
}
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  *pool = reinterpret_cast<cudaMemPool_t>(&Gpus()[properties->location.id]);
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }
cudaError_t cudaMallocFromPoolAsync(void** memory, size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream) {
  if (reinterpret_cast<Gpu*>(pool) != &Here()) return Keep(cudaErrorInvalidDevice);
  return Keep(Current().AllocateOn(Of(stream), bytes, "a test"), memory);
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  return Keep(Current().FreeOn(Of(stream), memory));
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const auto copy = kind == cudaMemcpyHostToDevice   ? &Device::CopyToDevice
                    : kind == cudaMemcpyDeviceToHost ? &Device::CopyToHost
                                                     : &Device::CopyWithin;
  return Keep((Current().*copy)(to, from, bytes, Of(stream)));
}
cudaError_t cudaMemsetAsync(void* to, int byte, size_t bytes, cudaStream_t stream) {
  return Keep(Current().Fill(to, byte, bytes, Of(stream)));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return Keep(Current().CreateStream(), stream);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return Keep(Current().DestroyStream(Of(stream)));
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int priority) {
  return Keep(
      Current().CreateStream(priority < 0 ? StreamPriority::kHigh : StreamPriority::kNormal),
      stream);
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const absl::StatusOr<bool> capturing = Current().IsCapturing(Of(stream));
  if (!capturing.ok()) return Keep(capturing.status());
  *status = *capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (Unsafe() != cudaSuccess) return cudaErrorStreamCaptureUnsupported;
  return KeepDone(Current().IsIdle(Of(stream)));
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (Unsafe() != cudaSuccess) return cudaErrorStreamCaptureUnsupported;
  return Keep(Current().Synchronize(Of(stream)));
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return Keep(Current().StreamWait(Of(stream), Of(event)));
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return Keep(Current().CreateEvent(), event);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) { return Keep(Current().DestroyEvent(Of(event))); }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return Keep(Current().RecordEvent(Of(event), Of(stream)));
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (Unsafe() != cudaSuccess) return cudaErrorStreamCaptureUnsupported;
  return KeepDone(Current().IsDone(Of(event)));
}

}  // extern "C"

}  // namespace shardpack

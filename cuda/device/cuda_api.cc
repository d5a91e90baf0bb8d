#include "cuda/device/cuda_api.h"

#include <cuda_runtime_api.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/strings/str_cat.h"
#include "cuda/dynload/cuda_driver.h"
#include "cuda/kernels/gather_kernel.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

static_assert(int{kDeviceInvalidValue} == int{cudaErrorInvalidValue});
static_assert(int{kDeviceOutOfMemory} == int{cudaErrorMemoryAllocation});
static_assert(int{kDeviceNotInitialized} == int{cudaErrorInitializationError});
static_assert(int{kDeviceUnloading} == int{cudaErrorCudartUnloading});
static_assert(int{kDeviceInsufficientDriver} == int{cudaErrorInsufficientDriver});
static_assert(int{kDeviceUnavailable} == int{cudaErrorDevicesUnavailable});
static_assert(int{kDeviceInvalidFunction} == int{cudaErrorInvalidDeviceFunction});
static_assert(int{kDeviceNone} == int{cudaErrorNoDevice});
static_assert(int{kDeviceInvalidDevice} == int{cudaErrorInvalidDevice});
static_assert(int{kDeviceInvalidImage} == int{cudaErrorInvalidKernelImage});
static_assert(int{kDeviceNoKernelImage} == int{cudaErrorNoKernelImageForDevice});
static_assert(int{kDeviceEccUncorrectable} == int{cudaErrorECCUncorrectable});
static_assert(int{kDeviceInvalidPtx} == int{cudaErrorInvalidPtx});
static_assert(int{kDeviceNvlink} == int{cudaErrorNvlinkUncorrectable});
static_assert(int{kDeviceNoPtxCompiler} == int{cudaErrorJitCompilerNotFound});
static_assert(int{kDeviceUnsupportedPtx} == int{cudaErrorUnsupportedPtxVersion});
static_assert(int{kDevicePtxDisabled} == int{cudaErrorJitCompilationDisabled});
static_assert(int{kDeviceOsCall} == int{cudaErrorOperatingSystem});
static_assert(int{kDeviceInvalidHandle} == int{cudaErrorInvalidResourceHandle});
static_assert(int{kDeviceNotReady} == int{cudaErrorNotReady});
static_assert(int{kDeviceIllegalAddress} == int{cudaErrorIllegalAddress});
static_assert(int{kDeviceLaunchTimeout} == int{cudaErrorLaunchTimeout});
static_assert(int{kDeviceContextDestroyed} == int{cudaErrorContextIsDestroyed});
static_assert(int{kDeviceAssert} == int{cudaErrorAssert});
static_assert(int{kDeviceAlreadyRegistered} == int{cudaErrorHostMemoryAlreadyRegistered});
static_assert(int{kDeviceNotRegistered} == int{cudaErrorHostMemoryNotRegistered});
static_assert(int{kDeviceHardwareStack} == int{cudaErrorHardwareStackError});
static_assert(int{kDeviceIllegalInstruction} == int{cudaErrorIllegalInstruction});
static_assert(int{kDeviceMisalignedAddress} == int{cudaErrorMisalignedAddress});
static_assert(int{kDeviceInvalidAddressSpace} == int{cudaErrorInvalidAddressSpace});
static_assert(int{kDeviceInvalidPc} == int{cudaErrorInvalidPc});
static_assert(int{kDeviceLaunchFailure} == int{cudaErrorLaunchFailure});
static_assert(int{kDeviceMpsFailure} == int{cudaErrorMpsRpcFailure});
static_assert(int{kDeviceMpsTerminated} == int{cudaErrorMpsClientTerminated});
static_assert(int{kDeviceNotSupported} == int{cudaErrorNotSupported});
static_assert(int{kDeviceUnknown} == int{cudaErrorUnknown});

// What a table's `self` is.
struct CudaDevice {
  int device = 0;
  CudaDriver driver;
  std::atomic<CudaDriver::Context> primary{nullptr};  // once it was needed; kept for good
  DeviceHealth health;
  DeviceApi api;
};

DeviceStatus From(cudaError_t error) {
  if (error == cudaSuccess) return {};
  // An error that stays is told by later calls anyway; another one, or that something is not ready
  // yet, must not be taken for the consumer's own.
  (void)cudaGetLastError();
  return {static_cast<int>(error), cudaGetErrorName(error)};
}

// Makes the device's context current, and then again what was current before. Not by cudaSetDevice:
// to put the former device back with it makes a context there too, and the former device of a
// thread that never chose one is GPU 0.
class CurrentDevice {
 public:
  explicit CurrentDevice(void* self) : device_(*static_cast<CudaDevice*>(self)) {
    const CudaDriver& driver = device_.driver;
    CudaDriver::Context wanted = device_.primary.load(), former = nullptr;
    if (wanted == nullptr) {
      int handle = 0;
      result_ = driver.get(&handle, device_.device);
      if (result_ == 0) result_ = driver.primary(&wanted, handle);
      if (result_ == 0) device_.primary.store(wanted);
    }
    if (result_ == 0) result_ = driver.current(&former);
    if (result_ != 0 || former == wanted) return;
    result_ = driver.push(wanted);
    pushed_ = result_ == 0;
  }
  ~CurrentDevice() {
    CudaDriver::Context context = nullptr;
    if (pushed_) (void)device_.driver.pop(&context);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

  // `call` when the device could be made current. The driver's numbers are the runtime's.
  template <typename Call>
  DeviceStatus Do(const Call& call) const {
    return From(result_ != 0 ? static_cast<cudaError_t>(result_) : call());
  }

 private:
  CudaDevice& device_;
  int result_ = 0;
  bool pushed_ = false;
};

template <typename Call>
DeviceStatus On(void* self, const Call& call) {
  return CurrentDevice(self).Do(call);
}

cudaStream_t ToCuda(Stream stream) { return reinterpret_cast<cudaStream_t>(stream); }
cudaEvent_t ToCuda(Event event) { return reinterpret_cast<cudaEvent_t>(event); }

// Needs no context, and makes none.
DeviceStatus Info(void* self, DeviceInfo* info) {
  const int device = static_cast<CudaDevice*>(self)->device;
  *info = {};
  static_assert(sizeof(cudaDeviceProp::name) == sizeof(info->name));
  cudaDeviceProp properties;
  const cudaError_t error = cudaGetDeviceProperties(&properties, device);
  if (error != cudaSuccess) return From(error);
  std::memcpy(info->name, properties.name, sizeof(info->name));
  info->memory_bytes = properties.totalGlobalMem;
  info->major = properties.major;
  info->minor = properties.minor;
  info->copy_engines = properties.asyncEngineCount;
  (void)cudaDeviceGetPCIBusId(info->pci_bus_id, sizeof(info->pci_bus_id), device);
  (void)cudaDriverGetVersion(&info->driver_version);
  // Drivers that do not know it say so; no node is known then.
  if (cudaDeviceGetAttribute(&info->host_numa_node, cudaDevAttrHostNumaId, device) != cudaSuccess) {
    info->host_numa_node = -1;
    (void)cudaGetLastError();
  }
  return {};
}

DeviceStatus IsPinned(void* self, const void* memory, bool* pinned) {
  *pinned = false;
  return On(self, [&] {
    cudaPointerAttributes attributes;
    const cudaError_t error = cudaPointerGetAttributes(&attributes, memory);
    *pinned = error == cudaSuccess && attributes.type == cudaMemoryTypeHost;
    return error;
  });
}

DeviceStatus Copy(void* self, void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                  Stream stream) {
  return On(self, [&] { return cudaMemcpyAsync(to, from, bytes, kind, ToCuda(stream)); });
}

void FillMemory(DeviceApi& api) {
  api.host_register = [](void* self, void* memory, size_t bytes) {
    return On(self, [&] { return cudaHostRegister(memory, bytes, cudaHostRegisterPortable); });
  };
  api.host_unregister = [](void* self, void* memory) {
    return On(self, [&] { return cudaHostUnregister(memory); });
  };
  api.host_alloc = [](void* self, void** memory, size_t bytes) {
    return On(self, [&] { return cudaHostAlloc(memory, bytes, cudaHostAllocPortable); });
  };
  api.host_free = [](void* self, void* memory) {
    return On(self, [&] { return cudaFreeHost(memory); });
  };
  api.is_pinned = IsPinned;
  api.allocate = [](void* self, void** memory, size_t bytes) {
    return On(self, [&] { return cudaMalloc(memory, bytes); });
  };
  api.free = [](void* self, void* memory) { return On(self, [&] { return cudaFree(memory); }); };
  api.copy_to_device = [](void* self, void* to, const void* from, size_t bytes, Stream stream) {
    return Copy(self, to, from, bytes, cudaMemcpyHostToDevice, stream);
  };
  api.copy_to_host = [](void* self, void* to, const void* from, size_t bytes, Stream stream) {
    return Copy(self, to, from, bytes, cudaMemcpyDeviceToHost, stream);
  };
  api.copy_within = [](void* self, void* to, const void* from, size_t bytes, Stream stream) {
    return Copy(self, to, from, bytes, cudaMemcpyDeviceToDevice, stream);
  };
  api.fill = [](void* self, void* to, int byte, size_t bytes, Stream stream) {
    return On(self, [&] { return cudaMemsetAsync(to, byte, bytes, ToCuda(stream)); });
  };
}

void FillStreams(DeviceApi& api) {
  api.stream_create = [](void* self, Stream* stream) {
    return On(self, [&] {
      cudaStream_t made = nullptr;
      const cudaError_t error = cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
      *stream = reinterpret_cast<Stream>(made);
      return error;
    });
  };
  api.stream_destroy = [](void* self, Stream stream) {
    return On(self, [&] { return cudaStreamDestroy(ToCuda(stream)); });
  };
  api.stream_query = [](void* self, Stream stream) {
    return On(self, [&] { return cudaStreamQuery(ToCuda(stream)); });
  };
  api.stream_synchronize = [](void* self, Stream stream) {
    return On(self, [&] { return cudaStreamSynchronize(ToCuda(stream)); });
  };
  api.stream_wait = [](void* self, Stream stream, Event event) {
    return On(self, [&] { return cudaStreamWaitEvent(ToCuda(stream), ToCuda(event), 0); });
  };
  api.event_create = [](void* self, Event* event, bool timing) {
    return On(self, [&] {
      cudaEvent_t made = nullptr;
      const cudaError_t error =
          cudaEventCreateWithFlags(&made, timing ? cudaEventDefault : cudaEventDisableTiming);
      *event = reinterpret_cast<Event>(made);
      return error;
    });
  };
  api.event_destroy = [](void* self, Event event) {
    return On(self, [&] { return cudaEventDestroy(ToCuda(event)); });
  };
  api.event_record = [](void* self, Event event, Stream stream) {
    return On(self, [&] { return cudaEventRecord(ToCuda(event), ToCuda(stream)); });
  };
  api.event_query = [](void* self, Event event) {
    return On(self, [&] { return cudaEventQuery(ToCuda(event)); });
  };
  api.event_synchronize = [](void* self, Event event) {
    return On(self, [&] { return cudaEventSynchronize(ToCuda(event)); });
  };
  api.event_elapsed_ms = [](void* self, float* ms, Event from, Event to) {
    return On(self, [&] { return cudaEventElapsedTime(ms, ToCuda(from), ToCuda(to)); });
  };
}

void FillTable(CudaDevice& device) {
  DeviceApi& api = device.api;
  api.self = &device;
  api.health = &device.health;
  api.kind = DeviceKind::kCuda;
  api.device = device.device;
  api.info = Info;
  api.memory_info = [](void* self, uint64_t* free_bytes, uint64_t* total_bytes) {
    return On(self, [&] {
      size_t free_now = 0, total = 0;
      const cudaError_t error = cudaMemGetInfo(&free_now, &total);
      *free_bytes = free_now;
      *total_bytes = total;
      return error;
    });
  };
  api.enter_thread = [](void* self) {
    const cudaError_t error = cudaSetDevice(static_cast<CudaDevice*>(self)->device);
    if (error != cudaSuccess) return From(error);
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    return From(cudaThreadExchangeStreamCaptureMode(&mode));
  };
  api.last_error = [](void* self) { return On(self, [] { return cudaGetLastError(); }); };
  FillMemory(api);
  FillStreams(api);
  api.preprocess = [](void* self, const PreprocessLaunch& launch, Stream stream) {
    return On(self, [&] { return static_cast<cudaError_t>(LaunchPreprocess(launch, stream)); });
  };
  api.gather = [](void* self, const GatherLaunch& launch, Stream stream) {
    return On(self, [&] { return static_cast<cudaError_t>(LaunchGather(launch, stream)); });
  };
}

std::string VisibleDevices() {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible == nullptr ? "CUDA_VISIBLE_DEVICES is not set"
                            : absl::StrCat("CUDA_VISIBLE_DEVICES=", visible);
}

// Why there is no GPU, or none that can be used.
absl::Status CannotStart(cudaError_t error) {
  if (error == cudaErrorInitializationError) {
    return absl::FailedPreconditionError(
        absl::StrCat("CUDA cannot start in this process (", cudaGetErrorName(error),
                     "): most likely it was forked after CUDA was used; open the device before "
                     "CUDA is used and after the fork, or start the process by spawn"));
  }
  std::string reason = absl::StrCat(cudaGetErrorName(error), ": ", cudaGetErrorString(error));
  if (error == cudaErrorInsufficientDriver) {
    int driver = 0;
    (void)cudaDriverGetVersion(&driver);
    absl::StrAppend(&reason,
                    driver == 0
                        ? "; no NVIDIA driver (libcuda.so.1) was found"
                        : absl::StrCat("; the driver is for CUDA ", driver / 1000, ".",
                                       driver % 1000 / 10, ", this program needs ",
                                       CUDART_VERSION / 1000, ".", CUDART_VERSION % 1000 / 10));
  }
  if (error == cudaErrorNoDevice) absl::StrAppend(&reason, " (", VisibleDevices(), ")");
  return absl::UnavailableError(absl::StrCat("no GPU can be used: ", reason));
}

}  // namespace

absl::StatusOr<const DeviceApi*> CudaDeviceApi(int device) {
  static std::mutex mutex;
  static pid_t process = 0;  // that used CUDA
  static auto* const devices = new std::map<int, std::unique_ptr<CudaDevice>>();
  const std::lock_guard lock(mutex);
  if (process != 0 && process != ::getpid()) {
    return absl::FailedPreconditionError(
        "CUDA was used before this process was forked, which it does not survive: open the device "
        "after the fork, or start the process by spawn");
  }
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted != cudaSuccess) {
    (void)cudaGetLastError();
    return CannotStart(counted);
  }
  process = ::getpid();
  if (device < 0 || device >= count) {
    return absl::NotFoundError(absl::StrCat("there is no GPU ", device, "; ", count,
                                            count == 1 ? " is" : " are", " visible (",
                                            VisibleDevices(), ")"));
  }
  std::unique_ptr<CudaDevice>& found = (*devices)[device];
  if (found == nullptr) {
    ASSIGN_OR_RETURN(const CudaDriver driver, OpenCudaDriver());
    found = std::make_unique<CudaDevice>();
    found->device = device;
    found->driver = driver;
    FillTable(*found);
  }
  return &found->api;
}

}  // namespace shardpack

#include "cuda/device/cuda_device.h"

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
#include <string_view>

#include "absl/strings/str_cat.h"
#include "cuda/device/device_error.h"
#include "cuda/dynload/cuda_driver.h"
#include "cuda/dynload/driver_floor.h"
#include "cuda/kernels/gather_kernel.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

static_assert(int{kDeviceInvalidValue} == int{cudaErrorInvalidValue});
static_assert(int{kDeviceOutOfMemory} == int{cudaErrorMemoryAllocation});
static_assert(int{kDeviceNotInitialized} == int{cudaErrorInitializationError});
static_assert(int{kDeviceUnloading} == int{cudaErrorCudartUnloading});
static_assert(int{kDeviceInsufficientDriver} == int{cudaErrorInsufficientDriver});
static_assert(int{kDeviceNewerDriver} == int{cudaErrorCallRequiresNewerDriver});
static_assert(int{kDevicePriorLaunch} == int{cudaErrorPriorLaunchFailure});
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
static_assert(int{kDeviceOutOfResources} == int{cudaErrorLaunchOutOfResources});
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
static_assert(int{kDeviceNotPermitted} == int{cudaErrorNotPermitted});
static_assert(int{kDeviceDriverMismatch} == int{cudaErrorSystemDriverMismatch});
static_assert(int{kDeviceNoCompatibility} == int{cudaErrorCompatNotSupportedOnDevice});
static_assert(int{kDeviceMpsConnection} == int{cudaErrorMpsConnectionFailed});
static_assert(int{kDeviceMpsFailure} == int{cudaErrorMpsRpcFailure});
static_assert(int{kDeviceMpsTerminated} == int{cudaErrorMpsClientTerminated});
static_assert(int{kDeviceNotSupported} == int{cudaErrorNotSupported});
static_assert(int{kDeviceCaptureUnsupported} == int{cudaErrorStreamCaptureUnsupported});
static_assert(int{kDeviceCaptureInvalidated} == int{cudaErrorStreamCaptureInvalidated});
static_assert(int{kDeviceCaptureIsolation} == int{cudaErrorStreamCaptureIsolation});
static_assert(int{kDeviceCaptureImplicit} == int{cudaErrorStreamCaptureImplicit});
static_assert(int{kDeviceCapturedEvent} == int{cudaErrorCapturedEvent});
static_assert(int{kDeviceExternal} == int{cudaErrorExternalDevice});
static_assert(int{kDeviceUnknown} == int{cudaErrorUnknown});
#if CUDART_VERSION >= 13000
static_assert(int{kDeviceContained} == int{cudaErrorContained});
static_assert(int{kDeviceTensorLeak} == int{cudaErrorTensorMemoryLeak});
#endif

// Makes the GPU's context current, and then again what was current before. Not by cudaSetDevice: to
// put the former device back with it makes a context there too, and the former device of a thread
// that never chose one is GPU 0.
class CurrentContext {
 public:
  // `primary` is the GPU's context, once one call has needed it; it is kept for good.
  CurrentContext(const CudaDriver& driver, int number, std::atomic<CudaDriver::Context>& primary)
      : driver_(driver) {
    CudaDriver::Context wanted = primary.load(), former = nullptr;
    if (wanted == nullptr) {
      int handle = 0;
      result_ = driver.get(&handle, number);
      if (result_ == 0) result_ = driver.primary(&wanted, handle);
      if (result_ == 0) primary.store(wanted);
    }
    if (result_ == 0) result_ = driver.current(&former);
    if (result_ != 0 || former == wanted) return;
    result_ = driver.push(wanted);
    pushed_ = result_ == 0;
  }
  ~CurrentContext() {
    CudaDriver::Context context = nullptr;
    if (pushed_) (void)driver_.pop(&context);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

  // `call` when the context could be made current. The driver's numbers are the runtime's.
  template <typename Call>
  cudaError_t Do(const Call& call) const {
    if (result_ != 0) return static_cast<cudaError_t>(result_);
    // While another thread of the program captures a graph, most calls would fail here and end the
    // capture, in threads that did not choose otherwise: those of consumers and collectors.
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    const bool exchanged = cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess;
    const cudaError_t error = call();
    if (exchanged) (void)cudaThreadExchangeStreamCaptureMode(&mode);
    // An error that stays is told by later calls anyway; another one, or that something is not
    // ready yet, must not be taken for the consumer's own.
    if (error != cudaSuccess) (void)cudaGetLastError();
    return error;
  }

 private:
  const CudaDriver& driver_;
  int result_ = 0;
  bool pushed_ = false;
};

cudaStream_t ToCuda(Stream stream) { return reinterpret_cast<cudaStream_t>(stream); }
cudaEvent_t ToCuda(Event event) { return reinterpret_cast<cudaEvent_t>(event); }

class CudaDevice final : public Device {
 public:
  CudaDevice(int number, const CudaDriver& driver)
      : Device(DeviceKind::kCuda, number), driver_(driver) {}

  absl::StatusOr<DeviceInfo> Info() override;
  absl::StatusOr<DeviceMemory> Memory() override {
    size_t free_bytes = 0, total_bytes = 0;
    RETURN_IF_ERROR(On("asking for the device's memory",
                       [&] { return cudaMemGetInfo(&free_bytes, &total_bytes); }));
    return DeviceMemory{.free_bytes = free_bytes, .total_bytes = total_bytes};
  }
  absl::Status EnterThread() override {
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaError_t error = cudaSetDevice(number());
    if (error == cudaSuccess) error = cudaThreadExchangeStreamCaptureMode(&mode);
    if (error == cudaSuccess) return absl::OkStatus();
    (void)cudaGetLastError();
    return Failure(error, cudaGetErrorName(error), "entering a thread");
  }

  absl::Status RegisterHost(void* memory, size_t bytes) override {
    const auto call = [&] { return cudaHostRegister(memory, bytes, cudaHostRegisterPortable); };
    if (const cudaError_t error = Run(call)) return Failed(error, PageLocking(bytes));
    return absl::OkStatus();
  }
  absl::Status UnregisterHost(void* memory) override {
    return On("unlocking pages", [&] { return cudaHostUnregister(memory); });
  }
  absl::StatusOr<void*> AllocateHost(size_t bytes) override {
    void* memory = nullptr;
    const auto call = [&] { return cudaHostAlloc(&memory, bytes, cudaHostAllocPortable); };
    if (const cudaError_t error = Run(call)) return Failed(error, PageLocking(bytes));
    return memory;
  }
  absl::Status FreeHost(void* memory) override {
    return On("freeing page-locked memory", [&] { return cudaFreeHost(memory); });
  }
  absl::StatusOr<bool> IsPinned(const void* memory) override {
    cudaPointerAttributes attributes;
    RETURN_IF_ERROR(On("asking whether memory is page-locked",
                       [&] { return cudaPointerGetAttributes(&attributes, memory); }));
    return attributes.type == cudaMemoryTypeHost;
  }
  absl::StatusOr<void*> Allocate(size_t bytes, std::string_view purpose) override {
    void* memory = nullptr;
    if (const cudaError_t error = Run([&] { return cudaMalloc(&memory, bytes); })) {
      return Failed(error, Allocating(bytes, purpose));
    }
    return memory;
  }
  absl::Status Free(void* memory) override {
    return On("freeing memory on the device", [&] { return cudaFree(memory); });
  }

  absl::Status DestroyStream(Stream stream) override {
    return On("ending a stream", [&] { return cudaStreamDestroy(ToCuda(stream)); });
  }
  absl::StatusOr<void*> AllocateOn(Stream stream, size_t bytes, std::string_view purpose) override {
    void* memory = nullptr;
    const cudaError_t error = Run([&] {
      cudaMemPool_t const pool = Pool();
      return pool == nullptr ? cudaMalloc(&memory, bytes)
                             : cudaMallocFromPoolAsync(&memory, bytes, pool, ToCuda(stream));
    });
    if (error != cudaSuccess) return Failed(error, Allocating(bytes, purpose));
    return memory;
  }
  // cudaFree, which takes memory of both kinds, waits for the device.
  absl::Status FreeOn(Stream stream, void* memory) override {
    return On("freeing memory on the device", [&] {
      if (Pool() == nullptr) return cudaFree(memory);
      if (cudaFreeAsync(memory, ToCuda(stream)) == cudaSuccess) return cudaSuccess;
      (void)cudaGetLastError();  // of a stream that is gone, say
      return cudaFree(memory);
    });
  }
  absl::StatusOr<bool> IsIdle(Stream stream) override {
    return Ask("asking whether a stream is idle", [&] { return cudaStreamQuery(ToCuda(stream)); });
  }
  absl::Status Synchronize(Stream stream) override {
    return On("waiting for a stream", [&] { return cudaStreamSynchronize(ToCuda(stream)); });
  }
  absl::StatusOr<bool> IsCapturing(Stream stream) override {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const cudaError_t error = Run([&] { return cudaStreamIsCapturing(ToCuda(stream), &status); });
    // A default stream, which must not be touched while a stream that it is ordered with captures.
    if (error == cudaErrorStreamCaptureImplicit) return true;
    if (error != cudaSuccess) return Failed(error, "asking whether a stream captures a graph");
    return status != cudaStreamCaptureStatusNone;
  }
  absl::Status StreamWait(Stream stream, Event event) override {
    return On("making a stream wait for an event",
              [&] { return cudaStreamWaitEvent(ToCuda(stream), ToCuda(event), 0); });
  }
  absl::StatusOr<Event> CreateEvent() override {
    cudaEvent_t event = nullptr;
    RETURN_IF_ERROR(On("making an event",
                       [&] { return cudaEventCreateWithFlags(&event, cudaEventDisableTiming); }));
    return reinterpret_cast<Event>(event);
  }
  absl::Status DestroyEvent(Event event) override {
    return On("ending an event", [&] { return cudaEventDestroy(ToCuda(event)); });
  }
  absl::Status RecordEvent(Event event, Stream stream) override {
    return On("recording an event", [&] { return cudaEventRecord(ToCuda(event), ToCuda(stream)); });
  }
  absl::StatusOr<bool> IsDone(Event event) override {
    return Ask("waiting for an event", [&] { return cudaEventQuery(ToCuda(event)); });
  }

  absl::Status CopyToDevice(void* to, const void* from, size_t bytes, Stream stream) override {
    return Copy("copying to the device", to, from, bytes, cudaMemcpyHostToDevice, stream);
  }
  absl::Status CopyToHost(void* to, const void* from, size_t bytes, Stream stream) override {
    return Copy("copying to the host", to, from, bytes, cudaMemcpyDeviceToHost, stream);
  }
  absl::Status CopyWithin(void* to, const void* from, size_t bytes, Stream stream) override {
    return Copy("copying within the device", to, from, bytes, cudaMemcpyDeviceToDevice, stream);
  }
  absl::Status Fill(void* to, int byte, size_t bytes, Stream stream) override {
    return On("filling memory on the device",
              [&] { return cudaMemsetAsync(to, byte, bytes, ToCuda(stream)); });
  }
  absl::Status Preprocess(const PreprocessLaunch& launch, Stream stream) override {
    return On("starting the preprocessing",
              [&] { return static_cast<cudaError_t>(LaunchPreprocess(launch, stream)); });
  }
  absl::Status AugmentRound(const RoundLaunch& launch, Stream stream) override {
    return On("starting the augmentation of a batch",
              [&] { return static_cast<cudaError_t>(LaunchAugmentRound(launch, stream)); });
  }
  absl::Status Gather(const GatherLaunch& launch, Stream stream) override {
    return On("starting the gathering of a batch",
              [&] { return static_cast<cudaError_t>(LaunchGather(launch, stream)); });
  }

 protected:
  absl::StatusOr<Stream> MakeStream(StreamPriority priority) override {
    cudaStream_t stream = nullptr;
    RETURN_IF_ERROR(On("making a stream", [&] {
      int least = 0, greatest = 0;
      const cudaError_t error = cudaDeviceGetStreamPriorityRange(&least, &greatest);
      if (error != cudaSuccess) return error;
      return cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                          priority == StreamPriority::kHigh ? greatest : least);
    }));
    return reinterpret_cast<Stream>(stream);
  }
  // An error that stays is given by every call, to make a stream included.
  int CodeNow() override {
    return Run([] {
      cudaStream_t stream = nullptr;
      cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
      if (error != cudaSuccess) return error;
      error = cudaStreamQuery(stream);
      (void)cudaStreamDestroy(stream);
      return error;
    });
  }

 private:
  template <typename Call>
  cudaError_t Run(const Call& call) {
    return CurrentContext(driver_, number(), primary_).Do(call);
  }
  // Of this device alone, so that nobody else's settings matter; it keeps what is freed. nullptr
  // where the driver has none. Within Run.
  cudaMemPool_t Pool() {
    std::call_once(pool_made_, [this] {
      int supported = 0;
      cudaMemPoolProps properties = {};
      properties.allocType = cudaMemAllocationTypePinned;
      properties.location.type = cudaMemLocationTypeDevice;
      properties.location.id = number();
      uint64_t keep = UINT64_MAX;
      if (cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, number()) !=
              cudaSuccess ||
          supported == 0 || cudaMemPoolCreate(&pool_, &properties) != cudaSuccess ||
          cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep) != cudaSuccess) {
        (void)cudaGetLastError();
        pool_ = nullptr;
      }
    });
    return pool_;
  }
  template <typename Call>
  absl::Status On(const char* doing, const Call& call) {
    if (const cudaError_t error = Run(call)) return Failed(error, doing);
    return absl::OkStatus();
  }
  // For calls that answer whether the device is done.
  template <typename Call>
  absl::StatusOr<bool> Ask(const char* doing, const Call& call) {
    const cudaError_t error = Run(call);
    if (error == cudaSuccess || error == cudaErrorNotReady) return error == cudaSuccess;
    return Failed(error, doing);
  }
  absl::Status Copy(const char* doing, void* to, const void* from, size_t bytes,
                    cudaMemcpyKind kind, Stream stream) {
    return On(doing, [&] { return cudaMemcpyAsync(to, from, bytes, kind, ToCuda(stream)); });
  }
  absl::Status Failed(cudaError_t error, std::string_view doing) {
    return Failure(error, cudaGetErrorName(error), doing);
  }

  const CudaDriver driver_;
  std::atomic<CudaDriver::Context> primary_{nullptr};
  std::once_flag pool_made_;
  cudaMemPool_t pool_ = nullptr;
};

// Needs no context, and makes none.
absl::StatusOr<DeviceInfo> CudaDevice::Info() {
  cudaDeviceProp properties;
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, number())) {
    (void)cudaGetLastError();
    return Failed(error, "asking for the device");
  }
  DeviceInfo info;
  static_assert(sizeof(cudaDeviceProp::name) == sizeof(info.name));
  std::memcpy(info.name, properties.name, sizeof(info.name));
  info.memory_bytes = properties.totalGlobalMem;
  info.major = properties.major;
  info.minor = properties.minor;
  info.copy_engines = properties.asyncEngineCount;
  (void)cudaDeviceGetPCIBusId(info.pci_bus_id, sizeof(info.pci_bus_id), number());
  (void)cudaDriverGetVersion(&info.driver_version);
  // Drivers that do not know the attribute say so; no node is known then.
  if (cudaDeviceGetAttribute(&info.host_numa_node, cudaDevAttrHostNumaId, number()) !=
      cudaSuccess) {
    info.host_numa_node = -1;
    (void)cudaGetLastError();
  }
  return info;
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
    const std::string why = driver == 0 ? "no NVIDIA driver (libcuda.so.1) was found"
                                        : DriverTooOld(CUDART_VERSION, driver);
    absl::StrAppend(&reason, why.empty() ? "" : "; ", why);
  }
  if (error == cudaErrorNoDevice) absl::StrAppend(&reason, " (", VisibleDevices(), ")");
  return absl::UnavailableError(absl::StrCat("no GPU can be used: ", reason));
}

}  // namespace

absl::StatusOr<Device*> OpenCudaDevice(int number) {
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
  if (number < 0 || number >= count) {
    return absl::NotFoundError(absl::StrCat("there is no GPU ", number, "; ", count,
                                            count == 1 ? " is" : " are", " visible (",
                                            VisibleDevices(), ")"));
  }
  std::unique_ptr<CudaDevice>& found = (*devices)[number];
  if (found == nullptr) {
    ASSIGN_OR_RETURN(const CudaDriver driver, OpenCudaDriver());
    found = std::make_unique<CudaDevice>(number, driver);
  }
  return found.get();
}

}  // namespace shardpack

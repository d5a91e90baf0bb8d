// DeviceApi: the table of device calls that everything in cuda/ goes through, and what their errors
// mean.
//
//   absl::Status copied = Checked(api, api.copy_to_device(api.self, to, from, bytes, stream),
//                                 "copying a batch to the device");
//   if (IsLost(api)) ...   // nothing more can be done on this device, nor freed
//
// Three tables exist: the CUDA runtime (cuda/device/cuda_api.h), a machine without a GPU
// (cuda/device/host_api.h), and one that checks and breaks (cuda/testing/fake_api.h). Each is bound
// to one device and leaves the calling thread's current device as it was.
//
// Lifetime: the table and what `self` points to outlive all that uses them.
// Thread-safety: any thread.
// Errors: DeviceStatus with the numbers of cudaError_t (driver_types.h of CUDA 13.0; cuda_api.cc
// checks that they are the same).
// Units: bytes. A null Stream is the device's default stream.
#ifndef SHARDPACK_CUDA_DEVICE_DEVICE_API_H_
#define SHARDPACK_CUDA_DEVICE_DEVICE_API_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "cuda/kernels/gather.h"
#include "cuda/kernels/preprocess.h"

namespace shardpack {

// Pieces of one allocation begin at such places, as allocations themselves do.
constexpr size_t DeviceAligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

// The values of cudaStream_t and cudaEvent_t.
struct StreamHandle;
struct EventHandle;
using Stream = StreamHandle*;
using Event = EventHandle*;

struct DeviceStatus {
  int code = 0;
  const char* name = "cudaSuccess";  // static

  bool ok() const { return code == 0; }
};

// Of cudaError_t, what is told apart here.
enum DeviceErrorCode : int {
  kDeviceOk = 0,
  kDeviceInvalidValue = 1,
  kDeviceOutOfMemory = 2,
  kDeviceNotInitialized = 3,
  kDeviceUnloading = 4,
  kDeviceInsufficientDriver = 35,
  kDeviceUnavailable = 46,
  kDeviceInvalidFunction = 98,
  kDeviceNone = 100,
  kDeviceInvalidDevice = 101,
  kDeviceInvalidImage = 200,
  kDeviceNoKernelImage = 209,
  kDeviceEccUncorrectable = 214,
  kDeviceInvalidPtx = 218,
  kDeviceNvlink = 220,
  kDeviceNoPtxCompiler = 221,
  kDeviceUnsupportedPtx = 222,
  kDevicePtxDisabled = 223,
  kDeviceOsCall = 304,
  kDeviceInvalidHandle = 400,
  kDeviceNotReady = 600,
  kDeviceIllegalAddress = 700,
  kDeviceLaunchTimeout = 702,
  kDeviceContextDestroyed = 709,
  kDeviceAssert = 710,
  kDeviceAlreadyRegistered = 712,
  kDeviceNotRegistered = 713,
  kDeviceHardwareStack = 714,
  kDeviceIllegalInstruction = 715,
  kDeviceMisalignedAddress = 716,
  kDeviceInvalidAddressSpace = 717,
  kDeviceInvalidPc = 718,
  kDeviceLaunchFailure = 719,
  kDeviceNotSupported = 801,
  kDeviceMpsFailure = 806,
  kDeviceMpsTerminated = 810,
  kDeviceUnknown = 999,
};

enum class FailureClass : uint8_t {
  kNone,        // no error, or "not ready"
  kCapability,  // this device, driver or system cannot: another way is taken
  kResource,    // memory: less of it is tried once
  kLost,        // every later call fails too; nothing is freed through the device
  kOther,       // this call was wrong or unlucky
};

FailureClass ClassOf(const DeviceStatus& status);
// "WHAT: NAME (error CODE)"; Unimplemented, ResourceExhausted, Unavailable, Internal by class.
absl::Status ToStatus(const DeviceStatus& status, std::string_view what);

enum class DeviceKind : uint8_t { kHost, kCuda };  // where the memory of `allocate` lies

struct DeviceInfo {
  char name[256] = {};
  char pci_bus_id[32] = {};
  uint64_t memory_bytes = 0;
  int major = 0, minor = 0;                   // compute capability
  int driver_version = 0;                     // 13000: 13.0
  int copy_engines = 0, host_numa_node = -1;  // -1: unknown
};

// Shared by all that use a table, so that nobody frees through a device that somebody saw lost.
struct DeviceHealth {
  std::atomic<const char*> name{nullptr};  // of the first error that said so
  std::atomic<int> lost{0};                // its code
};

struct DeviceApi {
  void* self = nullptr;  // first argument of every call
  DeviceHealth* health = nullptr;
  DeviceKind kind = DeviceKind::kHost;
  int device = 0;

  DeviceStatus (*info)(void* self, DeviceInfo* info) = nullptr;
  DeviceStatus (*memory_info)(void* self, uint64_t* free_bytes, uint64_t* total_bytes) = nullptr;
  // Of a thread that is the caller's own, for good: the device is current, for libraries that go by
  // it, and that other threads capture a graph does not make its calls fail.
  DeviceStatus (*enter_thread)(void* self) = nullptr;
  DeviceStatus (*last_error)(void* self) = nullptr;  // and forgets it, unless it stays

  // Page-locked memory. Registered for all devices (portable).
  DeviceStatus (*host_register)(void* self, void* memory, size_t bytes) = nullptr;
  DeviceStatus (*host_unregister)(void* self, void* memory) = nullptr;
  DeviceStatus (*host_alloc)(void* self, void** memory, size_t bytes) = nullptr;
  DeviceStatus (*host_free)(void* self, void* memory) = nullptr;
  DeviceStatus (*is_pinned)(void* self, const void* memory, bool* pinned) = nullptr;

  DeviceStatus (*allocate)(void* self, void** memory, size_t bytes) = nullptr;
  DeviceStatus (*free)(void* self, void* memory) = nullptr;

  // Streams do not wait for the default stream.
  DeviceStatus (*stream_create)(void* self, Stream* stream) = nullptr;
  DeviceStatus (*stream_destroy)(void* self, Stream stream) = nullptr;
  DeviceStatus (*stream_query)(void* self, Stream stream) = nullptr;  // kDeviceNotReady
  DeviceStatus (*stream_synchronize)(void* self, Stream stream) = nullptr;
  // What is enqueued from now on runs after the event as it was last recorded.
  DeviceStatus (*stream_wait)(void* self, Stream stream, Event event) = nullptr;

  // With `timing`, for event_elapsed_ms.
  DeviceStatus (*event_create)(void* self, Event* event, bool timing) = nullptr;
  DeviceStatus (*event_destroy)(void* self, Event event) = nullptr;
  DeviceStatus (*event_record)(void* self, Event event, Stream stream) = nullptr;
  // kDeviceOk for an event never recorded.
  DeviceStatus (*event_query)(void* self, Event event) = nullptr;
  DeviceStatus (*event_synchronize)(void* self, Event event) = nullptr;
  DeviceStatus (*event_elapsed_ms)(void* self, float* ms, Event from, Event to) = nullptr;

  // Asynchronous where the host's memory is page-locked.
  DeviceStatus (*copy_to_device)(void* self, void* to, const void* from, size_t bytes,
                                 Stream stream) = nullptr;
  DeviceStatus (*copy_to_host)(void* self, void* to, const void* from, size_t bytes,
                               Stream stream) = nullptr;
  DeviceStatus (*copy_within)(void* self, void* to, const void* from, size_t bytes,
                              Stream stream) = nullptr;
  DeviceStatus (*fill)(void* self, void* to, int byte, size_t bytes, Stream stream) = nullptr;

  DeviceStatus (*preprocess)(void* self, const PreprocessLaunch& launch, Stream stream) = nullptr;
  DeviceStatus (*gather)(void* self, const GatherLaunch& launch, Stream stream) = nullptr;
};

// Of a lost device: Unavailable, with the first error.
absl::Status LostStatus(const DeviceApi& api);
inline bool IsLost(const DeviceApi& api) { return api.health->lost.load() != 0; }
// Whether the stream has nothing left to do, after waiting for that by asking again and again: a
// device that hangs answers too.
bool WaitUntilIdle(const DeviceApi& api, Stream stream, std::chrono::milliseconds patience);
// ToStatus, which also keeps in mind a loss of the device.
absl::Status Checked(const DeviceApi& api, const DeviceStatus& status, std::string_view what);

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_DEVICE_DEVICE_API_H_

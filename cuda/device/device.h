// Device: the device calls that everything in cuda/ goes through.
//
//   absl::Status copied = device.CopyToDevice(to, from, bytes, stream);
//   if (device.lost()) ...   // nothing more can be done on this device, nor freed
//
// There are three: a GPU (cuda/device/cuda_device.h), a machine without one
// (cuda/device/host_device.h), and a fake that checks its use and fails on demand
// (cuda/testing/fake_device.h). Each stands for one device and leaves the calling thread's current
// device as it was.
//
// Lifetime: outlives everything that uses it.
// Thread-safety: any thread.
// Errors: a Status whose text says what was being done, and the name and number of CUDA's error;
// cuda/device/device_error.h has what the codes mean. An error that loses the device is remembered:
// lost() is true from then on, for all users of the device.
// Units: bytes. A null Stream is the device's default stream.
#ifndef SHARDPACK_CUDA_DEVICE_DEVICE_H_
#define SHARDPACK_CUDA_DEVICE_DEVICE_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuda/kernels/augment_round.h"
#include "cuda/kernels/gather.h"
#include "cuda/kernels/preprocess.h"

namespace shardpack {

// Allocations, and the pieces of one, begin at multiples of this, as those of cudaMalloc.
inline constexpr size_t kDeviceAlignment = 256;
constexpr size_t DeviceAligned(size_t bytes) {
  return (bytes + kDeviceAlignment - 1) / kDeviceAlignment * kDeviceAlignment;
}

// The values of cudaStream_t and cudaEvent_t.
struct StreamHandle;
struct EventHandle;
using Stream = StreamHandle*;
using Event = EventHandle*;

// The default streams that cudaStreamLegacy and cudaStreamPerThread name. The legacy one is ordered
// before and after the per-thread ones of all threads; of these the calling thread's is meant.
inline Stream LegacyStream() { return reinterpret_cast<Stream>(uintptr_t{1}); }
inline Stream ThreadStream() { return reinterpret_cast<Stream>(uintptr_t{2}); }

// kHigh: for short work that others wait for. The device prefers its blocks to those of others.
enum class StreamPriority : uint8_t { kNormal, kHigh };

enum class DeviceKind : uint8_t { kHost, kCuda };  // where the memory of Allocate lies

struct DeviceInfo {
  char name[256] = {};
  char pci_bus_id[32] = {};
  uint64_t memory_bytes = 0;
  int major = 0, minor = 0;                   // compute capability
  int driver_version = 0;                     // 13000: 13.0
  int copy_engines = 0, host_numa_node = -1;  // -1: unknown
};

struct DeviceMemory {
  uint64_t free_bytes = 0, total_bytes = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  DeviceKind kind() const { return kind_; }
  // Whether the CPU itself runs its kernels.
  virtual bool is_cpu() const { return false; }
  int number() const { return number_; }

  bool lost() const { return lost_.load() != kNotLost; }
  // Of a lost device: Unavailable, with the first error.
  absl::Status LostStatus() const;
  // Polls the stream, so that it returns even if the device hangs; false if the stream still has
  // work to do after `patience`, or cannot be asked.
  bool WaitUntilIdle(Stream stream, std::chrono::milliseconds patience);

  virtual absl::StatusOr<DeviceInfo> Info() = 0;
  virtual absl::StatusOr<DeviceMemory> Memory() = 0;
  // Call once on a thread you own. Makes the device current, for libraries that rely on that, and
  // relaxes stream capture, so that another thread's graph capture cannot fail this thread's calls.
  virtual absl::Status EnterThread() = 0;

  // Page-locked host memory, for all devices (portable).
  virtual absl::Status RegisterHost(void* memory, size_t bytes) = 0;
  virtual absl::Status UnregisterHost(void* memory) = 0;
  virtual absl::StatusOr<void*> AllocateHost(size_t bytes) = 0;
  virtual absl::Status FreeHost(void* memory) = 0;
  virtual absl::StatusOr<bool> IsPinned(const void* memory) = 0;

  // `purpose` is for the error: "a batch".
  virtual absl::StatusOr<void*> Allocate(size_t bytes, std::string_view purpose) = 0;
  virtual absl::Status Free(void* memory) = 0;
  // In the order of a stream: for what is enqueued there later, and until what was enqueued there
  // before is done. Neither waits for the device, where that has such memory; else as above.
  virtual absl::StatusOr<void*> AllocateOn(Stream /*stream*/, size_t bytes,
                                           std::string_view purpose) {
    return Allocate(bytes, purpose);
  }
  virtual absl::Status FreeOn(Stream /*stream*/, void* memory) { return Free(memory); }

  // Streams do not wait for the default stream.
  absl::StatusOr<Stream> CreateStream(StreamPriority priority = StreamPriority::kNormal) {
    return MakeStream(priority);
  }
  virtual absl::Status DestroyStream(Stream stream) = 0;
  virtual absl::StatusOr<bool> IsIdle(Stream stream) = 0;
  virtual absl::Status Synchronize(Stream stream) = 0;
  // Whether what is enqueued there now becomes part of a graph and does not run. Then neither may
  // an event be recorded there nor the stream wait for one: that would end the capture.
  virtual absl::StatusOr<bool> IsCapturing(Stream stream) = 0;
  // What is enqueued from now on runs after the event as it was last recorded.
  virtual absl::Status StreamWait(Stream stream, Event event) = 0;

  virtual absl::StatusOr<Event> CreateEvent() = 0;
  virtual absl::Status DestroyEvent(Event event) = 0;
  virtual absl::Status RecordEvent(Event event, Stream stream) = 0;
  // True for an event that was never recorded.
  virtual absl::StatusOr<bool> IsDone(Event event) = 0;

  // Asynchronous where the host's memory is page-locked.
  virtual absl::Status CopyToDevice(void* to, const void* from, size_t bytes, Stream stream) = 0;
  virtual absl::Status CopyToHost(void* to, const void* from, size_t bytes, Stream stream) = 0;
  virtual absl::Status CopyWithin(void* to, const void* from, size_t bytes, Stream stream) = 0;
  virtual absl::Status Fill(void* to, int byte, size_t bytes, Stream stream) = 0;

  virtual absl::Status Preprocess(const PreprocessLaunch& launch, Stream stream) = 0;
  virtual absl::Status AugmentRound(const RoundLaunch& launch, Stream stream) = 0;
  virtual absl::Status Gather(const GatherLaunch& launch, Stream stream) = 0;

 protected:
  Device(DeviceKind kind, int number) : kind_(kind), number_(number) {}
  // DeviceError, remembered if it loses the device; so does an error of an unknown number that
  // CodeNow gives again. `name` is static.
  absl::Status Failure(int code, const char* name, std::string_view doing);
  // What a harmless call gives now; 0: success.
  virtual int CodeNow() { return 0; }
  virtual absl::StatusOr<Stream> MakeStream(StreamPriority priority) = 0;

 private:
  static constexpr int kNotLost = 0;

  const DeviceKind kind_;
  const int number_;
  std::atomic<const char*> lost_name_{nullptr};  // of the first error that lost the device
  std::atomic<int> lost_{kNotLost};              // its code
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_DEVICE_DEVICE_H_

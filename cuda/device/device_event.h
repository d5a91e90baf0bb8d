// DeviceEvent: an event whose memory may be used again only once it is done.
//
//   DeviceEvent read(device, &stop);
//   absl::Status status = read.Record(stream);   // after what reads the memory
//   if ((status = read.Wait()).ok()) ...         // may be written again
//
// Wait polls instead of waiting in a call of the device, so that `stop` ends it even if the device
// hangs.
//
// Lifetime: the device outlives it; the destructor waits in the same way.
// Thread-safety: one thread at a time; any thread may set `stop`.
// Errors: those of the calls; Cancelled when stopped.
#ifndef SHARDPACK_CUDA_DEVICE_DEVICE_EVENT_H_
#define SHARDPACK_CUDA_DEVICE_DEVICE_EVENT_H_

#include <atomic>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuda/device/device.h"

namespace shardpack {

class DeviceEvent {
 public:
  // `stop` may be nullptr.
  DeviceEvent(Device& device, const std::atomic<bool>* stop) : device_(&device), stop_(stop) {}
  DeviceEvent(DeviceEvent&& other) noexcept
      : device_(other.device_),
        stop_(other.stop_),
        event_(std::exchange(other.event_, nullptr)),
        pending_(std::exchange(other.pending_, false)) {}
  DeviceEvent& operator=(DeviceEvent&&) = delete;
  ~DeviceEvent();

  // Makes the event if there is none yet.
  absl::Status Record(Stream stream);
  // For what was recorded last; returns at once if nothing was.
  absl::Status Wait();
  // Whether Wait would return at once.
  absl::StatusOr<bool> IsDone();

 private:
  Device* device_;
  const std::atomic<bool>* stop_;
  Event event_ = nullptr;
  bool pending_ = false;
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_DEVICE_DEVICE_EVENT_H_

// DeviceEvent: an event whose memory may be used again only when it has come.
//
//   DeviceEvent read(api, &stop);
//   absl::Status status = read.Record(stream);   // behind what reads the memory
//   if ((status = read.Wait()).ok()) ...         // may be written again
//
// Wait asks again and again instead of waiting in the device's call, so that `stop` ends it even on
// a device that hangs.
//
// Lifetime: the table outlives it; the destructor waits in the same way.
// Thread-safety: one thread at a time; `stop` may be set by any.
// Errors: those of the calls; Cancelled when stopped.
#ifndef SHARDPACK_CUDA_DEVICE_DEVICE_EVENT_H_
#define SHARDPACK_CUDA_DEVICE_DEVICE_EVENT_H_

#include <atomic>
#include <utility>

#include "absl/status/status.h"
#include "cuda/device/device_api.h"

namespace shardpack {

class DeviceEvent {
 public:
  // `stop` may be nullptr.
  DeviceEvent(const DeviceApi& api, const std::atomic<bool>* stop) : api_(&api), stop_(stop) {}
  DeviceEvent(DeviceEvent&& other) noexcept
      : api_(other.api_),
        stop_(other.stop_),
        event_(std::exchange(other.event_, nullptr)),
        pending_(std::exchange(other.pending_, false)) {}
  DeviceEvent& operator=(DeviceEvent&&) = delete;
  ~DeviceEvent();

  // Makes the event when there is none yet.
  absl::Status Record(Stream stream);
  // For what was recorded last; at once without.
  absl::Status Wait();

 private:
  const DeviceApi* api_;
  const std::atomic<bool>* stop_;
  Event event_ = nullptr;
  bool pending_ = false;
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_DEVICE_DEVICE_EVENT_H_

#include "cuda/device/device_event.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "formats/io/status_macros.h"

namespace shardpack {

DeviceEvent::~DeviceEvent() {
  if (event_ == nullptr) return;
  (void)Wait();
  if (!IsLost(*api_)) (void)Checked(*api_, api_->event_destroy(api_->self, event_), "");
}

absl::Status DeviceEvent::Record(Stream stream) {
  if (event_ == nullptr) {
    Event made = nullptr;
    RETURN_IF_ERROR(
        Checked(*api_, api_->event_create(api_->self, &made, false), "making an event"));
    event_ = made;
  }
  absl::Status recorded =
      Checked(*api_, api_->event_record(api_->self, event_, stream), "recording an event");
  pending_ = pending_ || recorded.ok();
  return recorded;
}

absl::Status DeviceEvent::Wait() {
  using std::chrono::microseconds;
  for (microseconds nap(20); pending_; nap = std::min(nap * 2, microseconds(1000))) {
    const DeviceStatus status = api_->event_query(api_->self, event_);
    if (status.ok()) {
      pending_ = false;
    } else if (status.code != kDeviceNotReady) {
      return Checked(*api_, status, "waiting for an event");
    } else if (stop_ != nullptr && stop_->load()) {
      return absl::CancelledError("the loader was stopped");
    } else {
      std::this_thread::sleep_for(nap);
    }
  }
  return absl::OkStatus();
}

}  // namespace shardpack

#include "cuda/device/device_event.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "formats/io/status_macros.h"

namespace shardpack {

DeviceEvent::~DeviceEvent() {
  if (event_ == nullptr) return;
  (void)Wait();
  if (!device_->lost()) (void)device_->DestroyEvent(event_);
}

absl::Status DeviceEvent::Record(Stream stream) {
  if (event_ == nullptr) {
    ASSIGN_OR_RETURN(event_, device_->CreateEvent());
  }
  absl::Status recorded = device_->RecordEvent(event_, stream);
  pending_ = pending_ || recorded.ok();
  return recorded;
}

absl::StatusOr<bool> DeviceEvent::IsDone() {
  if (pending_) {
    ASSIGN_OR_RETURN(const bool done, device_->IsDone(event_));
    pending_ = !done;
  }
  return !pending_;
}

absl::Status DeviceEvent::Wait() {
  using std::chrono::microseconds;
  for (microseconds nap(20);; nap = std::min(nap * 2, microseconds(1000))) {
    ASSIGN_OR_RETURN(const bool done, IsDone());
    if (done) return absl::OkStatus();
    if (stop_ != nullptr && stop_->load()) {
      return absl::CancelledError("the loader was stopped");
    }
    std::this_thread::sleep_for(nap);
  }
}

}  // namespace shardpack

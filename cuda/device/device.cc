#include "cuda/device/device.h"

#include <thread>

#include "absl/strings/str_cat.h"
#include "cuda/device/device_error.h"

namespace shardpack {

absl::Status Device::Failure(int code, const char* name, std::string_view doing) {
  const bool loses = LosesDevice(code) || (!IsKnownError(code) && CodeNow() == code);
  if (loses) {
    const char* none = nullptr;
    if (lost_name_.compare_exchange_strong(none, name)) lost_.store(code);
  }
  return DeviceError(code, name, doing, loses);
}

absl::Status Device::LostStatus() const {
  return absl::UnavailableError(absl::StrCat(
      "the device is lost to this process: ", lost_name_.load(), " (error ", lost_.load(), ")"));
}

bool Device::WaitUntilIdle(Stream stream, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    const absl::StatusOr<bool> idle = IsIdle(stream);
    if (idle.ok() && *idle) return true;
    if (lost() || std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

}  // namespace shardpack

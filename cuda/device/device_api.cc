#include "cuda/device/device_api.h"

#include <string>
#include <thread>

#include "absl/strings/str_cat.h"

namespace shardpack {

FailureClass ClassOf(const DeviceStatus& status) {
  switch (status.code) {
    case kDeviceOk:
    case kDeviceNotReady:
      return FailureClass::kNone;
    case kDeviceNotSupported:
    case kDeviceInsufficientDriver:
    case kDeviceNone:
    case kDeviceInvalidFunction:
    case kDeviceInvalidImage:
    case kDeviceNoKernelImage:
    case kDeviceInvalidPtx:
    case kDeviceNoPtxCompiler:
    case kDeviceUnsupportedPtx:
    case kDevicePtxDisabled:
    case kDeviceInvalidDevice:
      return FailureClass::kCapability;
    case kDeviceOutOfMemory:
      return FailureClass::kResource;
    case kDeviceUnloading:
    case kDeviceUnavailable:
    case kDeviceEccUncorrectable:
    case kDeviceNvlink:
    case kDeviceIllegalAddress:
    case kDeviceLaunchTimeout:
    case kDeviceContextDestroyed:
    case kDeviceAssert:
    case kDeviceHardwareStack:
    case kDeviceIllegalInstruction:
    case kDeviceMisalignedAddress:
    case kDeviceInvalidAddressSpace:
    case kDeviceInvalidPc:
    case kDeviceLaunchFailure:
    case kDeviceMpsFailure:
    case kDeviceMpsTerminated:
    case kDeviceUnknown:
      return FailureClass::kLost;
    default:
      return FailureClass::kOther;
  }
}

absl::Status ToStatus(const DeviceStatus& status, std::string_view what) {
  if (status.ok()) return absl::OkStatus();
  const std::string message =
      absl::StrCat(std::string(what), ": ", status.name, " (error ", status.code, ")");
  switch (ClassOf(status)) {
    case FailureClass::kCapability:
      return absl::UnimplementedError(message);
    case FailureClass::kResource:
      return absl::ResourceExhaustedError(message);
    case FailureClass::kLost:
      return absl::UnavailableError(absl::StrCat(message, "; the device is lost to this process"));
    default:
      return absl::InternalError(message);
  }
}

absl::Status Checked(const DeviceApi& api, const DeviceStatus& status, std::string_view what) {
  if (status.ok()) return absl::OkStatus();
  if (ClassOf(status) == FailureClass::kLost) {
    const char* none = nullptr;
    if (api.health->name.compare_exchange_strong(none, status.name))
      api.health->lost.store(status.code);
  }
  return ToStatus(status, what);
}

absl::Status LostStatus(const DeviceApi& api) {
  return absl::UnavailableError(
      absl::StrCat("the device is lost to this process: ", api.health->name.load(), " (error ",
                   api.health->lost.load(), ")"));
}

bool WaitUntilIdle(const DeviceApi& api, Stream stream, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    const DeviceStatus status = api.stream_query(api.self, stream);
    if (status.ok()) return true;
    (void)Checked(api, status, "");
    if (IsLost(api) || std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

}  // namespace shardpack

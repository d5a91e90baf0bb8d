#include "cuda/device/device_error.h"

#include <optional>

#include "absl/strings/str_cat.h"

namespace shardpack {
namespace {

// nullopt: not known.
std::optional<absl::StatusCode> StatusCodeOf(int code) {
  switch (code) {
    case kDeviceNotSupported:
    case kDeviceInsufficientDriver:
    case kDeviceNewerDriver:
    case kDeviceDriverMismatch:
    case kDeviceNoCompatibility:
    case kDeviceNone:
    case kDeviceInvalidFunction:
    case kDeviceInvalidImage:
    case kDeviceNoKernelImage:
    case kDeviceInvalidPtx:
    case kDeviceNoPtxCompiler:
    case kDeviceUnsupportedPtx:
    case kDevicePtxDisabled:
    case kDeviceInvalidDevice:
      return absl::StatusCode::kUnimplemented;
    case kDeviceOutOfMemory:
      return absl::StatusCode::kResourceExhausted;
    case kDeviceUnloading:
    case kDeviceUnavailable:
    case kDevicePriorLaunch:
    case kDeviceEccUncorrectable:
    case kDeviceNvlink:
    case kDeviceContained:
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
    case kDeviceTensorLeak:
    case kDeviceMpsConnection:
    case kDeviceMpsFailure:
    case kDeviceMpsTerminated:
    case kDeviceExternal:
      return absl::StatusCode::kUnavailable;
    case kDeviceInvalidValue:
    case kDeviceNotInitialized:
    case kDeviceOsCall:
    case kDeviceInvalidHandle:
    case kDeviceNotReady:
    case kDeviceOutOfResources:
    case kDeviceAlreadyRegistered:
    case kDeviceNotRegistered:
    case kDeviceNotPermitted:
    case kDeviceCaptureUnsupported:
    case kDeviceCaptureInvalidated:
    case kDeviceCaptureIsolation:
    case kDeviceCaptureImplicit:
    case kDeviceCapturedEvent:
      return absl::StatusCode::kInternal;
    default:  // kDeviceUnknown too
      return std::nullopt;
  }
}

}  // namespace

bool LosesDevice(int code) { return StatusCodeOf(code) == absl::StatusCode::kUnavailable; }

bool IsKnownError(int code) { return StatusCodeOf(code).has_value(); }

absl::Status DeviceError(int code, std::string_view name, std::string_view doing, bool lost) {
  return absl::Status(lost ? absl::StatusCode::kUnavailable
                           : StatusCodeOf(code).value_or(absl::StatusCode::kInternal),
                      absl::StrCat(std::string(doing), ": ", std::string(name), " (error ", code,
                                   ")", lost ? "; the device is lost to this process" : ""));
}

std::string PageLocking(size_t bytes) {
  return absl::StrCat("page-locking ", bytes, " bytes was refused");
}

std::string Allocating(size_t bytes, std::string_view purpose) {
  return absl::StrCat("allocating ", bytes, " bytes on the device for ", std::string(purpose));
}

}  // namespace shardpack

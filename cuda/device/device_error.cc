#include "cuda/device/device_error.h"

#include "absl/strings/str_cat.h"

namespace shardpack {
namespace {

absl::StatusCode StatusCodeOf(int code) {
  switch (code) {
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
      return absl::StatusCode::kUnimplemented;
    case kDeviceOutOfMemory:
      return absl::StatusCode::kResourceExhausted;
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
      return absl::StatusCode::kUnavailable;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

bool LosesDevice(int code) { return StatusCodeOf(code) == absl::StatusCode::kUnavailable; }

absl::Status DeviceError(int code, std::string_view name, std::string_view doing) {
  return absl::Status(
      StatusCodeOf(code),
      absl::StrCat(std::string(doing), ": ", std::string(name), " (error ", code, ")",
                   LosesDevice(code) ? "; the device is lost to this process" : ""));
}

std::string PageLocking(size_t bytes) {
  return absl::StrCat("page-locking ", bytes, " bytes was refused");
}

std::string Allocating(size_t bytes, std::string_view purpose) {
  return absl::StrCat("allocating ", bytes, " bytes on the device for ", std::string(purpose));
}

}  // namespace shardpack

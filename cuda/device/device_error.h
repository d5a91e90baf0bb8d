// What the numbers of CUDA's errors mean, as an absl::Status: for implementations of Device.
//
//   return DeviceError(code, "cudaErrorIllegalAddress", "recording an event", LosesDevice(code));
//
// Unimplemented: this device, driver or system cannot do it, and another way is taken.
// ResourceExhausted: less memory is tried once. Unavailable: the device is lost, every later call
// fails too. Internal: this call was wrong or unlucky. A number that is not known here may be
// either of the last two: that it comes again, from another call, says that the device is lost.
//
// Thread-safety: any thread.
#ifndef SHARDPACK_CUDA_DEVICE_DEVICE_ERROR_H_
#define SHARDPACK_CUDA_DEVICE_DEVICE_ERROR_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace shardpack {

// Those of cudaError_t (driver_types.h of CUDA 13.0) that are told apart here; cuda_device.cc
// checks that they are the same.
enum DeviceErrorCode : int {
  kDeviceOk = 0,
  kDeviceInvalidValue = 1,
  kDeviceOutOfMemory = 2,
  kDeviceNotInitialized = 3,
  kDeviceUnloading = 4,
  kDeviceInsufficientDriver = 35,
  kDeviceNewerDriver = 36,
  kDeviceUnavailable = 46,
  kDevicePriorLaunch = 53,
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
  kDeviceContained = 226,
  kDeviceOsCall = 304,
  kDeviceInvalidHandle = 400,
  kDeviceNotReady = 600,
  kDeviceIllegalAddress = 700,
  kDeviceOutOfResources = 701,
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
  kDeviceTensorLeak = 721,
  kDeviceNotPermitted = 800,
  kDeviceNotSupported = 801,
  kDeviceDriverMismatch = 803,
  kDeviceNoCompatibility = 804,
  kDeviceMpsConnection = 805,
  kDeviceMpsFailure = 806,
  kDeviceMpsTerminated = 810,
  kDeviceCaptureUnsupported = 900,
  kDeviceCaptureInvalidated = 901,
  kDeviceCaptureIsolation = 905,
  kDeviceCaptureImplicit = 906,
  kDeviceCapturedEvent = 907,
  kDeviceExternal = 911,
  kDeviceUnknown = 999,
};

bool LosesDevice(int code);
// Whether it is one of the above, whose meaning is clear.
bool IsKnownError(int code);

// "DOING: NAME (error CODE)". `lost`: with an error of this number the device is lost.
absl::Status DeviceError(int code, std::string_view name, std::string_view doing, bool lost);

// What is said of doing, with numbers.
std::string PageLocking(size_t bytes);
std::string Allocating(size_t bytes, std::string_view purpose);  // purpose: "a batch"

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_DEVICE_DEVICE_ERROR_H_

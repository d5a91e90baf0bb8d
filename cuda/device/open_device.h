// OpenDevice: the device that a program's user asked for: a GPU, or the CPU where that was asked
// for.
//
//   absl::StatusOr<OpenedDevice> device = OpenDevice("cuda:3");
//   PinnedMemory memory(*device->device);
//
// "cuda:3" or "3" is that GPU, and an error where it is not there; "cpu" is HostDevice::Get();
// "auto" is the GPU with the number in $LOCAL_RANK (0 without), or the CPU if this program or
// machine can use no GPU at all; `why_not` then says why, for a line that the user sees. Nothing
// else becomes the CPU: that a GPU of another number is there, or that CUDA does not survive a
// fork, is an error with "auto" as well.
//
// Lifetime: the devices are static.
// Thread-safety: any thread.
// Errors: those of OpenCudaDevice; InvalidArgument for any other word.
#ifndef SHARDPACK_CUDA_DEVICE_OPEN_DEVICE_H_
#define SHARDPACK_CUDA_DEVICE_OPEN_DEVICE_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "cuda/device/device.h"

namespace shardpack {

struct OpenedDevice {
  Device* device = nullptr;
  std::string why_not;  // why "auto" is the CPU; else empty
};

absl::StatusOr<OpenedDevice> OpenDevice(std::string_view wanted);

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_DEVICE_OPEN_DEVICE_H_

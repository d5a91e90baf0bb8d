// OpenCudaDevice: a real GPU. The one place that links the CUDA runtime.
//
//   absl::StatusOr<Device*> device = OpenCudaDevice(0);
//   if (!device.ok()) return device.status();
//
// CUDA is first called here, never before main or after it. `number` counts the GPUs that
// CUDA_VISIBLE_DEVICES leaves; a context is made on that GPU alone, by the first call that needs
// one, and the calling thread's current context is the same after each call.
//
// Lifetime: the device is static; the same one for the same number.
// Thread-safety: any thread.
// Errors: Unimplemented in a build without a toolkit; Unavailable when there is no driver or GPU or
// the driver is too old, with the reason; NotFound for a device number that is not there;
// FailedPrecondition in a child of a process that used CUDA. cuda/device/open_device.h says when
// the CPU may stand in.
#ifndef SHARDPACK_CUDA_DEVICE_CUDA_DEVICE_H_
#define SHARDPACK_CUDA_DEVICE_CUDA_DEVICE_H_

#include "absl/status/statusor.h"
#include "cuda/device/device.h"

namespace shardpack {

absl::StatusOr<Device*> OpenCudaDevice(int number = 0);

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_DEVICE_CUDA_DEVICE_H_

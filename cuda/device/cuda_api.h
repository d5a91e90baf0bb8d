// CudaDeviceApi: the table of a real GPU. The one place that links the CUDA runtime.
//
//   absl::StatusOr<const DeviceApi*> api = CudaDeviceApi(0);
//   if (!api.ok()) return api.status();
//
// CUDA is first called here, never before main or after it. `device` is the number among those that
// CUDA_VISIBLE_DEVICES leaves; a context is made on that GPU alone, by the first call that needs
// one, and the calling thread's current context is the same after each call.
//
// Thread-safety: any thread.
// Errors: Unimplemented in a build without a toolkit; Unavailable when there is no driver or GPU or
// the driver is too old, with the reason; NotFound for a device number that is not there;
// FailedPrecondition in a child of a process that used CUDA. cuda/device/open_device.h says when
// the CPU may stand in.
#ifndef SHARDPACK_CUDA_DEVICE_CUDA_API_H_
#define SHARDPACK_CUDA_DEVICE_CUDA_API_H_

#include "absl/status/statusor.h"
#include "cuda/device/device_api.h"

namespace shardpack {

absl::StatusOr<const DeviceApi*> CudaDeviceApi(int device = 0);

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_DEVICE_CUDA_API_H_

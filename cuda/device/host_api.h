// HostApi: the table for a machine without a GPU: all of it happens at once, on the CPU.
//
//   absl::StatusOr<const DeviceApi*> cuda = CudaDeviceApi(0);
//   const DeviceApi& api = cuda.ok() ? **cuda : HostApi();   // cuda.status() says why not
//
// So a program written for the GPU runs unchanged, with batches in host memory (DeviceKind::kHost).
//
// Thread-safety: any thread; as there is no stream to wait for, who uses memory from several
// threads orders them.
// Errors: out of memory.
// Units: bytes.
#ifndef SHARDPACK_CUDA_DEVICE_HOST_API_H_
#define SHARDPACK_CUDA_DEVICE_HOST_API_H_

#include "cuda/device/device_api.h"

namespace shardpack {

const DeviceApi& HostApi();

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_DEVICE_HOST_API_H_

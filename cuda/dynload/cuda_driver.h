// CudaDriver: functions of NVIDIA's driver, found at run time: nothing here links CUDA.
//
//   absl::StatusOr<CudaDriver> driver = OpenCudaDriver();
//   if (driver.ok() && driver->init(0) == 0) driver->count(&gpus);
//
// Opening the library and looking functions up makes no context, unlike most calls of the CUDA
// runtime, so it takes no memory on a GPU. Results are CUresult; 0 is success, and the numbers that
// are in cudaError_t too mean the same.
//
// Lifetime: the library stays open.
// Thread-safety: any thread.
// Errors: NotFound if the library cannot be opened, with the dynamic loader's message;
// Unimplemented if it lacks functions.
// Units: bytes.
#ifndef SHARDPACK_CUDA_DYNLOAD_CUDA_DRIVER_H_
#define SHARDPACK_CUDA_DYNLOAD_CUDA_DRIVER_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace shardpack {

struct CudaDriver {
  using Context = void*;

  int (*init)(unsigned flags) = nullptr;
  int (*version)(int* version) = nullptr;
  int (*count)(int* count) = nullptr;
  int (*get)(int* device, int ordinal) = nullptr;
  int (*name)(char* name, int bytes, int device) = nullptr;
  int (*memory)(size_t* bytes, int device) = nullptr;
  int (*attribute)(int* value, int attribute, int device) = nullptr;
  // The context of a device that the runtime, and so every library of the process, uses. The first
  // call makes it.
  int (*primary)(Context* context, int device) = nullptr;
  // Whether it has been made.
  int (*primary_state)(int device, unsigned* flags, int* active) = nullptr;
  // For the calling thread.
  int (*push)(Context context) = nullptr;
  int (*pop)(Context* context) = nullptr;
  int (*current)(Context* context) = nullptr;
  // May be nullptr.
  int (*bus_id)(char* id, int bytes, int device) = nullptr;
  int (*error_name)(int result, const char** name) = nullptr;
};

absl::StatusOr<CudaDriver> OpenCudaDriver(const std::string& library = "libcuda.so.1");

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_DYNLOAD_CUDA_DRIVER_H_

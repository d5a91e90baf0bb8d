#include "cuda/dynload/cuda_driver.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace shardpack {
namespace {

template <typename Function>
bool Find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  return function != nullptr;
}

// cuda.h maps the plain names to those with a version.
bool FindAll(void* library, CudaDriver& driver) {
  (void)Find(library, "cuGetErrorName", driver.error_name);
  (void)Find(library, "cuDeviceGetPCIBusId", driver.bus_id);
  return Find(library, "cuInit", driver.init) &&
         Find(library, "cuDriverGetVersion", driver.version) &&
         Find(library, "cuDeviceGetCount", driver.count) &&
         Find(library, "cuDeviceGet", driver.get) &&
         Find(library, "cuDeviceGetName", driver.name) &&
         Find(library, "cuDeviceTotalMem_v2", driver.memory) &&
         Find(library, "cuDeviceGetAttribute", driver.attribute) &&
         Find(library, "cuDevicePrimaryCtxRetain", driver.primary) &&
         Find(library, "cuDevicePrimaryCtxGetState", driver.primary_state) &&
         Find(library, "cuCtxPushCurrent_v2", driver.push) &&
         Find(library, "cuCtxPopCurrent_v2", driver.pop) &&
         Find(library, "cuCtxGetCurrent", driver.current);
}

}  // namespace

absl::StatusOr<CudaDriver> OpenCudaDriver(const std::string& library) {
  void* const opened = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) return absl::NotFoundError(::dlerror());
  CudaDriver driver;
  if (!FindAll(opened, driver)) {
    return absl::UnimplementedError(absl::StrCat(library, " lacks functions of CUDA's driver"));
  }
  return driver;
}

}  // namespace shardpack

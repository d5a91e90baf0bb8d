// Device: where batches go: a GPU, or the CPU where there is none.
//
//   const Device device = Device::Open(0);
//   PinnedMemory memory(*device.api);
//
// Lifetime: a value; the table that it names is static. Thread-safety: any thread. Errors: none;
// why_not says why it is no GPU.
#ifndef SHARDPACK_PYTHON_DEVICE_H_
#define SHARDPACK_PYTHON_DEVICE_H_

#include <pybind11/pybind11.h>

#include <string>

#include "cuda/device_api.h"

namespace shardpack::python {

struct Device {
  static Device Open(int number);
  static void Add(pybind11::module_& module);

  const DeviceApi* api = nullptr;
  std::string why_not;  // empty for a GPU
};

}  // namespace shardpack::python

#endif  // SHARDPACK_PYTHON_DEVICE_H_

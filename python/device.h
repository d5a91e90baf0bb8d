// Device: the destination of batches: a GPU, or the CPU on request.
//
//   const Device device = Device::Open(pybind11::int_(0));
//   PinnedMemory memory(*device.target);
//
// Accepts a number, "cuda:3", "cpu", "auto" (cuda/device/open_device.h), or an object that Python
// prints this way, such as a torch.device.
//
// Lifetime: a value; the device that it refers to is static.
// Thread-safety: with the GIL held.
// Errors: ValueError for other words; DeviceError if the GPU cannot be used; a RuntimeWarning with
// the reason if "auto" falls back to the CPU.
#ifndef SHARDPACK_PYTHON_DEVICE_H_
#define SHARDPACK_PYTHON_DEVICE_H_

#include <pybind11/pybind11.h>

#include <string>

#include "cuda/device/device.h"

namespace shardpack::python {

struct Device {
  static Device Open(const pybind11::object& wanted);
  static void Add(pybind11::module_& module);

  shardpack::Device* target = nullptr;
  std::string why_not;  // why "auto" is the CPU
};

}  // namespace shardpack::python

#endif  // SHARDPACK_PYTHON_DEVICE_H_

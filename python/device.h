// Device: where batches go: a GPU, or the CPU where that was asked for.
//
//   const Device device = Device::Open(pybind11::int_(0));
//   PinnedMemory memory(*device.target);
//
// What was asked for is a number, "cuda:3", "cpu", "auto" (cuda/device/open_device.h) or what
// Python prints so, as a torch.device.
//
// Lifetime: a value; the device that it names is static.
// Thread-safety: with the GIL held.
// Errors: ValueError for other words; DeviceError where that GPU cannot be used; a RuntimeWarning
// where "auto" is the CPU, with the reason.
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
  std::string why_not;  // of "auto", that it is the CPU
};

}  // namespace shardpack::python

#endif  // SHARDPACK_PYTHON_DEVICE_H_

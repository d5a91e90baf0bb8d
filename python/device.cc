#include "python/device.h"

#include "absl/status/statusor.h"
#include "cuda/cuda_api.h"
#include "cuda/host_api.h"

namespace shardpack::python {

Device Device::Open(int number) {
  const absl::StatusOr<const DeviceApi*> cuda = CudaDeviceApi(number);
  if (cuda.ok()) return {*cuda, ""};
  return {&HostApi(), std::string(cuda.status().message())};
}

void Device::Add(pybind11::module_& module) {
  pybind11::class_<Device>(module, "Device",
                           "A GPU; the CPU where there is none, so that a program runs everywhere.")
      .def(pybind11::init(&Device::Open), pybind11::arg("number") = 0)
      .def_property_readonly("kind",
                             [](const Device& device) {
                               return device.api->kind == DeviceKind::kCuda ? "cuda" : "cpu";
                             })
      .def_property_readonly(
          "why_not",
          [](const Device& device) -> pybind11::object {
            if (device.why_not.empty()) return pybind11::none();
            return pybind11::str(device.why_not);
          },
          "Why it is the CPU; None for a GPU.");
}

}  // namespace shardpack::python

#include "python/device.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "cuda/device/open_device.h"
#include "python/bindings.h"

namespace shardpack::python {

namespace py = pybind11;

Device Device::Open(const py::object& wanted) {
  absl::StatusOr<OpenedDevice> opened = OpenDevice(py::str(wanted).cast<std::string>());
  if (absl::IsInvalidArgument(opened.status())) Throw(opened.status());
  if (!opened.ok()) ThrowDeviceError(opened.status());
  if (!opened->why_not.empty()) {
    const std::string line = absl::StrCat("the device is the CPU: ", opened->why_not);
    if (PyErr_WarnEx(PyExc_RuntimeWarning, line.c_str(), 1) != 0) throw py::error_already_set();
  }
  return {opened->device, std::move(opened->why_not)};
}

void Device::Add(py::module_& module) {
  py::class_<Device>(module, "Device",
                     "Device(3) or Device('cuda:3') is that GPU, and a DeviceError where it cannot "
                     "be used. Device('cpu') makes the same batches in host memory. Device('auto') "
                     "is the GPU numbered $LOCAL_RANK (0 without), or, with a RuntimeWarning, the "
                     "CPU on a machine where no GPU can be used.")
      .def(py::init(&Device::Open), py::arg("device") = 0)
      .def_property_readonly("kind",
                             [](const Device& device) {
                               return device.target->kind() == DeviceKind::kCuda ? "cuda" : "cpu";
                             })
      .def_property_readonly(
          "number",
          [](const Device& device) -> py::object {
            if (device.target->kind() != DeviceKind::kCuda) return py::none();
            return py::int_(device.target->number());
          },
          "Of a GPU; None for the CPU.")
      .def_property_readonly(
          "why_not",
          [](const Device& device) -> py::object {
            if (device.why_not.empty()) return py::none();
            return py::str(device.why_not);
          },
          "Why Device('auto') is the CPU; else None.");
}

}  // namespace shardpack::python

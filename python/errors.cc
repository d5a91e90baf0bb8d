#include <pybind11/pybind11.h>

#include <string>

#include "python/bindings.h"

namespace shardpack::python {
namespace {

PyObject* data_loss_error = nullptr;
PyObject* cancelled_error = nullptr;
PyObject* device_error = nullptr;

PyObject* ExceptionOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kUnimplemented:
      return PyExc_ValueError;
    case absl::StatusCode::kOutOfRange:
      return PyExc_IndexError;
    case absl::StatusCode::kNotFound:
      return PyExc_FileNotFoundError;
    case absl::StatusCode::kPermissionDenied:
      return PyExc_PermissionError;
    case absl::StatusCode::kResourceExhausted:
      return PyExc_MemoryError;
    case absl::StatusCode::kDataLoss:
      return data_loss_error;
    case absl::StatusCode::kCancelled:
      return cancelled_error;
    default:
      return PyExc_OSError;
  }
}

[[noreturn]] void Raise(PyObject* exception, const absl::Status& status) {
  // Paths may contain bytes that are not UTF-8.
  const std::string message(status.message());
  const pybind11::object text = pybind11::reinterpret_steal<pybind11::object>(PyUnicode_DecodeUTF8(
      message.data(), static_cast<Py_ssize_t>(message.size()), "surrogateescape"));
  PyErr_SetObject(exception, text.ptr());
  throw pybind11::error_already_set();
}

}  // namespace

void Throw(const absl::Status& status) { Raise(ExceptionOf(status.code()), status); }
void ThrowDeviceError(const absl::Status& status) { Raise(device_error, status); }

void AddErrors(pybind11::module_& module) {
  data_loss_error =
      pybind11::exception<void>(module, "DataLossError", PyExc_OSError).release().ptr();
  cancelled_error =
      pybind11::exception<void>(module, "CancelledError", PyExc_RuntimeError).release().ptr();
  device_error =
      pybind11::exception<void>(module, "DeviceError", PyExc_RuntimeError).release().ptr();
}

}  // namespace shardpack::python

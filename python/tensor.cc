#include "python/tensor.h"

#include <cstdint>
#include <utility>

#include "cuda/loading/dlpack_export.h"
#include "python/bindings.h"

namespace shardpack::python {
namespace {

namespace py = pybind11;

// A consumer renames the capsule when it takes the content; the first name means that the content
// was not taken.
template <typename Managed>
py::object CapsuleOf(Managed* managed, const char* name, PyCapsule_Destructor destructor) {
  return py::reinterpret_steal<py::object>(PyCapsule_New(managed, name, destructor));
}

template <typename Managed>
void DeleteUntaken(PyObject* capsule, const char* name) {
  if (PyCapsule_IsValid(capsule, name) == 0) return;
  auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}

}  // namespace

py::tuple Tensor::Place() const {
  const DlpackDevice device = DlpackDeviceOf(tensor_);
  return py::make_tuple(static_cast<int>(device.type), device.id);
}

py::object Tensor::Dlpack(const py::object& stream, const py::object& max_version,
                          const py::object& device, const py::object& copy) {
  if (py::isinstance<py::bool_>(copy) && copy.cast<bool>())
    throw py::buffer_error("a batch is not copied; copy what is made of it");
  if (!device.is_none() && !device.equal(Place()))
    throw py::buffer_error("a batch does not move to another device");
  // None is the legacy default stream, 1; the runtime's own handles have the same numbers.
  const auto number = stream.is_none() ? int64_t{1} : stream.cast<int64_t>();
  if (tensor_.kind == DeviceKind::kHost) {
    ThrowIfError(batch_->WaitOn(nullptr));
  } else if (number == -1) {  // the consumer does its own synchronization
    throw py::buffer_error("a stream is needed: the batch may still be on its way");
  } else {
    ThrowIfError(batch_->WaitOn(reinterpret_cast<Stream>(static_cast<uintptr_t>(number))));
  }
  if (!max_version.is_none() && max_version[py::int_(0)].cast<uint32_t>() >= kDlpackVersion.major) {
    return CapsuleOf(ExportVersioned(tensor_, batch_), kDlpackVersionedCapsule, [](PyObject* at) {
      DeleteUntaken<DlpackManagedTensorVersioned>(at, kDlpackVersionedCapsule);
    });
  }
  return CapsuleOf(ExportLegacy(tensor_, batch_), kDlpackCapsule,
                   [](PyObject* at) { DeleteUntaken<DlpackManagedTensor>(at, kDlpackCapsule); });
}

void Tensor::Add(py::module_& module) {
  py::class_<Tensor>(module, "Tensor", "Memory of a batch, for torch.from_dlpack and its like.")
      .def("__dlpack__", &Tensor::Dlpack, py::kw_only(), py::arg("stream") = py::none(),
           py::arg("max_version") = py::none(), py::arg("dl_device") = py::none(),
           py::arg("copy") = py::none())
      .def("__dlpack_device__", &Tensor::Place)
      .def_property_readonly("shape", [](const Tensor& self) {
        py::tuple shape(self.tensor_.dimensions);
        for (uint32_t i = 0; i < self.tensor_.dimensions; ++i) shape[i] = self.tensor_.shape[i];
        return shape;
      });
}

}  // namespace shardpack::python

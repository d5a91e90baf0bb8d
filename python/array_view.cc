#include "python/array_view.h"

#include <string>
#include <utility>

namespace shardpack::python {
namespace {

namespace py = pybind11;

py::module_ Numpy() { return py::module_::import("numpy"); }

}  // namespace

py::object ArrayView::Make(py::object owner, const void* data, char format, size_t item_bytes,
                           std::vector<size_t> shape) {
  ArrayView view;
  view.owner_ = std::move(owner);
  view.data_ = const_cast<void*>(data);
  view.format_ = format;
  view.item_bytes_ = item_bytes;
  view.shape_ = std::move(shape);
  return Numpy().attr("asarray")(py::cast(std::move(view)));
}

py::object ArrayView::Copy(std::span<const uint64_t> values) {
  return Make(py::none(), values.data(), 'Q', sizeof(uint64_t), {values.size()}).attr("copy")();
}
py::object ArrayView::Copy(std::span<const int64_t> values) {
  return Make(py::none(), values.data(), 'q', sizeof(int64_t), {values.size()}).attr("copy")();
}

std::vector<uint64_t> ArrayView::Numbers(const py::object& array) {
  const py::buffer made = Numpy().attr("array")(array, py::arg("dtype") = "uint64").attr("ravel")();
  const py::buffer_info info = made.request();
  const auto* const data = static_cast<const uint64_t*>(info.ptr);
  return std::vector<uint64_t>(data, data + info.size);
}

void ArrayView::Add(py::module_& module) {
  py::class_<ArrayView>(module, "_ArrayView", py::buffer_protocol())
      .def_buffer([](ArrayView& view) {
        std::vector<py::ssize_t> shape(view.shape_.begin(), view.shape_.end());
        std::vector<py::ssize_t> strides(shape.size());
        auto stride = static_cast<py::ssize_t>(view.item_bytes_);
        for (size_t d = shape.size(); d-- > 0;) {
          strides[d] = stride;
          stride *= shape[d];
        }
        return py::buffer_info(view.data_, static_cast<py::ssize_t>(view.item_bytes_),
                               std::string(1, view.format_), static_cast<py::ssize_t>(shape.size()),
                               shape, strides);
      });
}

}  // namespace shardpack::python

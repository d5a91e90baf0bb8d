// ArrayView: memory as a NumPy array, using only Python's buffer protocol: pybind11's own arrays
// depend on the internals of NumPy 1, and give wrong strides with NumPy 2.
//
//   py::object array = ArrayView::Make(batch, pixels.data(), 'B', 1, {n, height, width, 3});
//
// Lifetime: the array keeps `owner` alive, which keeps the memory.
// Thread-safety: with the GIL held.
// Errors: Python's exceptions.
// Units: items; strides are C-contiguous.
#ifndef SHARDPACK_PYTHON_ARRAY_VIEW_H_
#define SHARDPACK_PYTHON_ARRAY_VIEW_H_

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shardpack::python {

class ArrayView {
 public:
  // `format` is a letter of Python's struct module. The array is writable: the memory belongs to
  // the array's user.
  static pybind11::object Make(pybind11::object owner, const void* data, char format,
                               size_t item_bytes, std::vector<size_t> shape);
  // An array with its own memory.
  static pybind11::object Copy(std::span<const uint64_t> values);
  static pybind11::object Copy(std::span<const int64_t> values);
  // Converts anything that NumPy accepts as an array of numbers.
  static std::vector<uint64_t> Numbers(const pybind11::object& array);

  static void Add(pybind11::module_& module);

 private:
  pybind11::object owner_;
  void* data_ = nullptr;
  char format_ = 'B';
  size_t item_bytes_ = 1;
  std::vector<size_t> shape_;
};

}  // namespace shardpack::python

#endif  // SHARDPACK_PYTHON_ARRAY_VIEW_H_

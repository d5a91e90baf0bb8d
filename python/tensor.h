// Tensor: memory of a DeviceBatch for any library that supports DLPack.
//
//   images = torch.from_dlpack(batch.pixels)     # not copied; on the GPU
//
// __dlpack__ makes the consumer's stream wait for the batch, as Python's DLPack protocol requires
// (https://dmlc.github.io/dlpack/latest/python_spec.html). The batch's memory is reused once all
// its tensors are gone and the work then enqueued on the stream of the last __dlpack__ is done.
//
// Lifetime: a tensor keeps its batch alive.
// Thread-safety: with the GIL held.
// Errors: Python exceptions.
// Units: elements.
#ifndef SHARDPACK_PYTHON_TENSOR_H_
#define SHARDPACK_PYTHON_TENSOR_H_

#include <pybind11/pybind11.h>

#include <memory>
#include <utility>

#include "cuda/loading/device_batch.h"

namespace shardpack::python {

class Tensor {
 public:
  Tensor(const DeviceTensor& tensor, std::shared_ptr<DeviceBatch> batch)
      : tensor_(tensor), batch_(std::move(batch)) {}

  static void Add(pybind11::module_& module);

 private:
  pybind11::tuple Place() const;  // in DLPack's numbering of devices
  pybind11::object Dlpack(const pybind11::object& stream, const pybind11::object& max_version,
                          const pybind11::object& device, const pybind11::object& copy);

  DeviceTensor tensor_;
  std::shared_ptr<DeviceBatch> batch_;
};

}  // namespace shardpack::python

#endif  // SHARDPACK_PYTHON_TENSOR_H_

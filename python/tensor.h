// Tensor: memory of a DeviceBatch for any library that speaks DLPack.
//
//   images = torch.from_dlpack(batch.pixels)     # not copied; on the GPU
//
// __dlpack__ makes the consumer's stream wait for the batch, as Python's DLPack protocol has it
// (https://dmlc.github.io/dlpack/latest/python_spec.html). The batch's memory is filled anew when
// all tensors taken of it are gone, after what was enqueued by then on the stream of the last
// __dlpack__.
//
// Lifetime: a tensor keeps its batch.
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
  pybind11::tuple Place() const;  // as DLPack numbers devices
  pybind11::object Dlpack(const pybind11::object& stream, const pybind11::object& max_version,
                          const pybind11::object& device, const pybind11::object& copy);

  DeviceTensor tensor_;
  std::shared_ptr<DeviceBatch> batch_;
};

}  // namespace shardpack::python

#endif  // SHARDPACK_PYTHON_TENSOR_H_

// Shared by the files of the module: how a Status becomes a Python exception, and what each file
// adds to the module.
//
//   Dataset dataset = ValueOrThrow(Dataset::Open(path));
//
// Thread-safety: with the GIL held.
// Errors: ValueOrThrow and ThrowIfError throw the Python exception that ExceptionOf names.
#ifndef SHARDPACK_PYTHON_BINDINGS_H_
#define SHARDPACK_PYTHON_BINDINGS_H_

#include <pybind11/pybind11.h>

#include <memory>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "readers/loading/host_batch.h"
#include "readers/loading/host_memory.h"
#include "readers/loading/loader.h"

namespace shardpack::python {

[[noreturn]] void Throw(const absl::Status& status);
[[noreturn]] void ThrowDeviceError(const absl::Status& status);  // for a device that cannot be used

inline void ThrowIfError(const absl::Status& status) {
  if (!status.ok()) Throw(status);
}
template <typename T>
T ValueOrThrow(absl::StatusOr<T> value) {
  if (!value.ok()) Throw(value.status());
  return *std::move(value);
}

// Makes a Python batch; its arrays keep it alive.
pybind11::object MakeBatch(HostBatch batch, std::shared_ptr<HostMemory> memory);

// "ok", "padding" or "substituted" for each slot.
pybind11::list StatusNames(std::span<const SampleStatus> status);
// A dict with epoch, step, id and why for each.
pybind11::list BadSampleRows(std::span<const BadSample> samples);

void AddErrors(pybind11::module_& module);
void AddDataset(pybind11::module_& module);
void AddOrder(pybind11::module_& module);
void AddDecode(pybind11::module_& module);
void AddHostBatch(pybind11::module_& module);
void AddLoader(pybind11::module_& module);
void AddDeviceLoader(pybind11::module_& module);

}  // namespace shardpack::python

#endif  // SHARDPACK_PYTHON_BINDINGS_H_

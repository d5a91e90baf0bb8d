#include "readers/loading/host_batch.h"

#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "python/array_view.h"
#include "python/bindings.h"

namespace shardpack::python {
namespace {

namespace py = pybind11;

// The memory must outlive the batch, whose slabs are in it.
struct Batch {
  std::shared_ptr<HostMemory> memory;
  HostBatch batch;
};

// Returns a view, not a copy: it keeps the batch, and thus the slabs, alive.
py::object PixelsOf(const py::object& self) {
  const PixelBatch* const pixels = self.cast<const Batch&>().batch.pixels();
  if (pixels == nullptr) return py::none();
  const size_t count = pixels->bytes.size() / pixels->sample_bytes;
  const size_t height = pixels->height, width = pixels->width, channels = pixels->channels;
  std::vector<size_t> shape = {count, height, width, channels};
  if (pixels->layout == PixelLayout::kNchw) shape = {count, channels, height, width};
  const std::pair<char, size_t> type = pixels->type == PixelType::kU8    ? std::pair('B', 1)
                                       : pixels->type == PixelType::kF32 ? std::pair('f', 4)
                                                                         : std::pair('e', 2);
  return ArrayView::Make(self, pixels->bytes.data(), type.first, type.second, std::move(shape));
}

size_t FieldOf(const HostBatch& batch, const std::string& name) {
  for (size_t field = 0; field < batch.fields(); ++field) {
    if (batch.field_name(field) == name) return field;
  }
  throw py::key_error(name);
}

py::object BytesOf(const py::object& self, size_t slot, const std::string& name) {
  const HostBatch& batch = self.cast<const Batch&>().batch;
  const size_t field = FieldOf(batch, name);
  if (slot >= batch.size()) throw py::index_error("slot beyond the batch");
  if (!batch.has(field, slot)) return py::none();
  const Bytes bytes = batch.bytes(field, slot);
  return ArrayView::Make(self, bytes.data(), 'B', 1, {bytes.size()});
}

}  // namespace

py::list StatusNames(std::span<const SampleStatus> status) {
  py::list all;
  for (const SampleStatus& each : status) {
    all.append(each.state == SampleState::kOk        ? "ok"
               : each.state == SampleState::kPadding ? "padding"
                                                     : "substituted");
  }
  return all;
}

py::object MakeBatch(HostBatch batch, std::shared_ptr<HostMemory> memory) {
  return py::cast(std::make_unique<Batch>(Batch{std::move(memory), std::move(batch)}));
}

void AddHostBatch(py::module_& module) {
  py::class_<Batch>(module, "Batch",
                    "The samples of one step. pixels and bytes() are views of the loader's memory: "
                    "each keeps the whole batch until it is gone. What is kept cannot be filled "
                    "anew, so copy what you want to keep for long.")
      .def("__len__", [](const Batch& batch) { return batch.batch.size(); })
      .def_property_readonly("epoch", [](const Batch& batch) { return batch.batch.epoch(); })
      .def_property_readonly("step", [](const Batch& batch) { return batch.batch.step(); })
      .def_property_readonly("ids",
                             [](const Batch& batch) { return ArrayView::Copy(batch.batch.ids()); })
      .def_property_readonly(
          "labels", [](const Batch& batch) { return ArrayView::Copy(batch.batch.labels()); },
          "int64; -1 where there is none, and for padding")
      .def_property_readonly(
          "status", [](const Batch& batch) { return StatusNames(batch.batch.status()); },
          "of each slot: 'ok', 'padding' or 'substituted'")
      .def_property_readonly("pixels", &PixelsOf,
                             "with a Decode: an array of its type and layout; else None")
      .def("bytes", &BytesOf, py::arg("slot"), py::arg("field") = "image",
           "The encoded bytes of a field, as uint8; None where the sample has none.");
}

}  // namespace shardpack::python

#include "python/loader.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cuda/loading/open_pinned_loader.h"
#include "cuda/loading/pinned_memory.h"
#include "python/bindings.h"

namespace shardpack::python {
namespace {

namespace py = pybind11;

BadSamples BadSamplesOf(const std::string& name) {
  if (name == "fail") return BadSamples::kFail;
  if (name == "substitute") return BadSamples::kSubstitute;
  throw py::value_error("bad_samples is 'fail' or 'substitute'");
}

std::unique_ptr<PythonLoader> Open(const Dataset& dataset, const Order& order, uint32_t rank,
                                   uint32_t world_size, std::vector<std::string> fields,
                                   std::optional<PixelPipelineOptions> decode,
                                   const std::optional<std::string>& cursor, bool verify,
                                   int threads, int io_threads, uint32_t prefetch_batches,
                                   uint64_t memory_bytes, uint64_t epochs, uint64_t augment_seed,
                                   const std::string& bad_samples, uint64_t max_bad_samples,
                                   std::optional<Device> device) {
  LoaderOptions options;
  options.fields = std::move(fields);
  options.verify = verify;
  options.threads = threads;
  options.io_threads = io_threads;
  options.prefetch_batches = prefetch_batches;
  options.memory_bytes = memory_bytes;
  options.epochs = epochs;
  options.decode = std::move(decode);
  options.augment_seed = augment_seed;
  options.bad_samples = BadSamplesOf(bad_samples);
  options.max_bad_samples = max_bad_samples;
  std::optional<Cursor> resume;
  if (cursor) resume = ValueOrThrow(CursorFromText(*cursor));
  const Rank share = {.rank = rank, .world_size = world_size};
  if (device) {
    auto pinned = std::make_shared<PinnedMemory>(*device->target,
                                                 PinnedMemoryOptions{.budget_bytes = memory_bytes});
    options.image_infos = !options.decode;  // a DeviceLoader may decode instead
    Loader loader = ValueOrThrow(Unlocked(
        [&] { return OpenPinnedLoader(dataset, order, share, options, *pinned, resume); }));
    return std::make_unique<PythonLoader>(std::move(pinned), std::move(loader), std::move(options),
                                          std::move(device));
  }
  auto memory = std::make_shared<PageableMemory>();
  Loader loader = ValueOrThrow(
      Unlocked([&] { return Loader::Open(dataset, order, share, options, *memory, resume); }));
  return std::make_unique<PythonLoader>(std::move(memory), std::move(loader), std::move(options),
                                        std::nullopt);
}

py::object Next(PythonLoader& self) {
  Loader& loader = self.loader();
  std::optional<HostBatch> made = ValueOrThrow(
      Interruptible([&](const Interrupted& interrupted) { return loader.Next(interrupted); }));
  if (!made) throw py::stop_iteration();
  return MakeBatch(*std::move(made), self.memory());
}

}  // namespace

py::list BadSampleRows(std::span<const BadSample> samples) {
  py::list all;
  for (const BadSample& bad : samples) {
    py::dict row;
    row["epoch"] = bad.epoch;
    row["step"] = bad.step;
    row["id"] = bad.id;
    row["why"] = bad.why;
    all.append(row);
  }
  return all;
}

void AddLoader(py::module_& module) {
  const LoaderOptions defaults;
  py::class_<PythonLoader>(module, "Loader",
                           "Batches, read ahead by threads. An iteration is an epoch; the next one "
                           "goes on with the next epoch. Open it after a fork, not before.")
      .def(py::init(&Open), py::arg("dataset"), py::arg("order"), py::kw_only(),
           py::arg("rank") = 0, py::arg("world_size") = 1, py::arg("fields") = defaults.fields,
           py::arg("decode") = py::none(), py::arg("cursor") = py::none(),
           py::arg("verify") = defaults.verify, py::arg("threads") = defaults.threads,
           py::arg("io_threads") = defaults.io_threads,
           py::arg("prefetch_batches") = defaults.prefetch_batches,
           py::arg("memory_bytes") = defaults.memory_bytes, py::arg("epochs") = defaults.epochs,
           py::arg("augment_seed") = defaults.augment_seed, py::arg("bad_samples") = "fail",
           py::arg("max_bad_samples") = defaults.max_bad_samples, py::arg("device") = py::none(),
           "device: a Device, for whose DeviceLoader batches are read into page-locked memory.")
      .def("__iter__", [](py::object self) { return self; })
      .def("__next__", &Next)
      .def_property_readonly(
          "cursor", [](PythonLoader& self) { return CursorToText(self.loader().cursor()); },
          "Text for a checkpoint: a loader opened with it goes on with the next batch, at any "
          "world "
          "size that divides the global batch.")
      .def_property_readonly(
          "epoch", [](PythonLoader& self) { return self.loader().cursor().epoch; },
          "Of the batch that comes next.")
      .def("explain", [](PythonLoader& self) { return self.loader().stats().Explain(); })
      .def("stats_json", [](PythonLoader& self) { return self.loader().stats().ToJson(); })
      .def(
          "take_bad_samples",
          [](PythonLoader& self) { return BadSampleRows(self.loader().TakeBadSamples()); },
          "The samples that others stood in for since the last call.")
      .def("stop", [](PythonLoader& self) { self.loader().Stop(); });
}

}  // namespace shardpack::python

#include "cuda/loading/device_loader.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cuda/loading/resident_loader.h"
#include "python/array_view.h"
#include "python/bindings.h"
#include "python/decode.h"
#include "python/loader.h"
#include "python/tensor.h"
#include "python/waiting.h"

namespace shardpack::python {
namespace {

namespace py = pybind11;

class PythonDeviceBatch {
 public:
  explicit PythonDeviceBatch(DeviceBatch batch)
      : batch_(std::make_shared<DeviceBatch>(std::move(batch))), info_(batch_->info()) {}

  const BatchInfo& info() const { return info_; }
  py::object pixels() const { return TensorOf(batch_->pixels()); }
  py::object labels() const { return TensorOf(batch_->labels()); }

 private:
  py::object TensorOf(const DeviceTensor* tensor) const {
    return tensor == nullptr ? py::none() : py::cast(Tensor(*tensor, batch_));
  }

  std::shared_ptr<DeviceBatch> batch_;
  BatchInfo info_;
};

template <typename L>
py::object NextOf(L& loader) {
  std::optional<DeviceBatch> batch = ValueOrThrow(
      Interruptible([&](const Interrupted& interrupted) { return loader.Next(interrupted); }));
  if (!batch) throw py::stop_iteration();
  return py::cast(PythonDeviceBatch(*std::move(batch)));
}

// The pinned memory must outlive the loader that uses it.
struct HeldDeviceLoader {
  std::shared_ptr<HostMemory> memory;
  DeviceLoader loader;
};

class PythonDeviceLoader {
 public:
  explicit PythonDeviceLoader(std::unique_ptr<HeldDeviceLoader> held) : held_(std::move(held)) {}
  ~PythonDeviceLoader() { EndInTime(std::move(held_)); }
  PythonDeviceLoader(const PythonDeviceLoader&) = delete;
  PythonDeviceLoader& operator=(const PythonDeviceLoader&) = delete;

  DeviceLoader& loader() const { return held_->loader; }

 private:
  std::unique_ptr<HeldDeviceLoader> held_;
};

// Uses the Loader's crops and handling of bad images.
DeviceDecode DecodeFor(const PixelPipelineOptions& decode, const LoaderOptions& loader) {
  if (decode.output.type != PixelType::kU8 || decode.output.layout != PixelLayout::kNhwc) {
    throw py::value_error("dtype, layout, mean and std are the DeviceLoader's, not Decode's");
  }
  if (decode.fast) throw py::value_error("fast is of the Loader's own decoding");
  return {.crop = decode.crop,
          .augment_seed = loader.augment_seed,
          .channels = decode.channels,
          .orient = decode.orient,
          .max_pixels = decode.max_pixels,
          .max_scans = decode.max_scans,
          .threads = loader.threads};
}

std::unique_ptr<PythonDeviceLoader> OpenDevice(
    PythonLoader& host, const std::optional<PixelPipelineOptions>& decode,
    const std::optional<std::string>& dtype, const std::string& layout, std::array<float, 3> mean,
    std::array<float, 3> std, uint32_t width, uint32_t height,
    const std::optional<std::string>& filter, uint32_t prefetch_batches) {
  if (!host.device())
    throw py::value_error("the Loader needs device=...: its memory is not pinned");
  DeviceOptions options;
  options.prefetch_batches = prefetch_batches;
  if (decode && filter) throw py::value_error("filter is Decode's where there is one");
  if (decode) {
    options.decode = DecodeFor(*decode, host.options());
    options.bad_images = {.policy = host.options().bad_samples,
                          .most = host.options().max_bad_samples};
  }
  if (dtype || decode) {
    options.preprocess =
        DevicePreprocess{.output = OutputOf(dtype.value_or("uint8"), layout, mean, std),
                         .width = width,
                         .height = height,
                         .filter = decode ? decode->filter : FilterOf(filter.value_or("bilinear"))};
  }
  // Opening waits for the first batch.
  using Opened = absl::StatusOr<std::unique_ptr<HeldDeviceLoader>>;
  return std::make_unique<
      PythonDeviceLoader>(ValueOrThrow(Abandonable([held = host.Take(), options,
                                                    api = host.device()->target](
                                                       const Interrupted& interrupted) mutable
                                                   -> Opened {
    absl::StatusOr<DeviceLoader> loader =
        DeviceLoader::Open(std::move(held->loader), options, *api, interrupted);
    if (!loader.ok()) return loader.status();
    return std::make_unique<HeldDeviceLoader>(HeldDeviceLoader{held->memory, *std::move(loader)});
  })));
}

std::unique_ptr<ResidentLoader> OpenResident(
    const Dataset& dataset, const Order& order, const Device& device, uint32_t width,
    uint32_t height, const std::optional<PixelPipelineOptions>& crop, uint32_t rank,
    uint32_t world_size, const std::string& dtype, const std::string& layout,
    std::array<float, 3> mean, std::array<float, 3> std, uint64_t epochs, uint64_t augment_seed,
    const std::optional<std::string>& cursor, int threads) {
  ResidentOptions options;
  options.width = width;
  options.height = height;
  if (crop) options.crop = crop->crop;
  options.output = OutputOf(dtype, layout, mean, std);
  options.epochs = epochs;
  options.augment_seed = augment_seed;
  options.threads = threads;
  std::optional<Cursor> resume;
  if (cursor) resume = ValueOrThrow(CursorFromText(*cursor));
  // Opening reads and decodes all images.
  const Rank share = {.rank = rank, .world_size = world_size};
  return std::make_unique<ResidentLoader>(
      ValueOrThrow(Abandonable([dataset, order, share, options, api = device.target,
                                resume](const Interrupted& interrupted) {
        return ResidentLoader::Open(dataset, order, share, options, *api, resume, interrupted);
      })));
}

py::dict DecodedBy(const DeviceLoaderStats& stats) {
  py::dict images;
  images["hardware"] = stats.decode.hardware;
  images["hybrid"] = stats.decode.hybrid;
  images["cpu"] = stats.decode.cpu;
  return images;
}

py::dict StatsOf(const DeviceLoaderStats& stats) {
  py::dict all;
  all["batches"] = stats.batches;
  all["uploaded_bytes"] = stats.uploaded_bytes;
  all["device_bytes"] = stats.device_bytes;
  all["buffers"] = stats.buffers;
  all["growths"] = stats.growths;
  all["waits"] = stats.waits;
  all["consumer_wait_ns"] = stats.consumer_wait_ns;
  all["buffer_wait_ns"] = stats.buffer_wait_ns;
  all["copy_wait_ns"] = stats.copy_wait_ns;
  all["pinned"] = stats.pinned;
  all["decoded_by"] = DecodedBy(stats);
  all["decode_backends"] = stats.decode_backends;
  all["fallbacks"] = stats.fallbacks;
  all["why_fallback"] = stats.why_fallback;
  return all;
}

void AddBatch(py::module_& module) {
  py::class_<PythonDeviceBatch>(
      module, "DeviceBatch",
      "The samples of one step, on the device. pixels and labels are tensors for "
      "torch.from_dlpack; the batch's memory is filled anew when all of them are gone.")
      .def("__len__", [](const PythonDeviceBatch& self) { return self.info().ids.size(); })
      .def_property_readonly("epoch",
                             [](const PythonDeviceBatch& self) { return self.info().epoch; })
      .def_property_readonly("step", [](const PythonDeviceBatch& self) { return self.info().step; })
      .def_property_readonly("ids",
                             [](const PythonDeviceBatch& self) {
                               return ArrayView::Copy(std::span<const uint64_t>(self.info().ids));
                             })
      .def_property_readonly(
          "status", [](const PythonDeviceBatch& self) { return StatusNames(self.info().status); })
      .def_property_readonly("pixels", &PythonDeviceBatch::pixels,
                             "None where the Loader does not decode")
      .def_property_readonly("labels", &PythonDeviceBatch::labels,
                             "int64; -1 where there is none, and for padding");
}

}  // namespace

void AddDeviceLoader(py::module_& module) {
  AddBatch(module);
  const OutputFormat output;
  py::class_<PythonDeviceLoader>(
      module, "DeviceLoader",
      "The batches of a Loader (opened with device=...), copied to the device ahead of the "
      "consumer. With dtype they are resized, normalised and cast there; the Loader then decodes "
      "to uint8 in nhwc. With decode, of a Loader without one, the images are decoded for the "
      "device: by its JPEG engines or nvJPEG where there are, else by threads. It takes the Loader "
      "over.")
      .def(py::init(&OpenDevice), py::arg("loader"), py::kw_only(), py::arg("decode") = py::none(),
           py::arg("dtype") = py::none(), py::arg("layout") = "nchw", py::arg("mean") = output.mean,
           py::arg("std") = output.std, py::arg("width") = 0, py::arg("height") = 0,
           py::arg("filter") = py::none(),
           py::arg("prefetch_batches") = DeviceOptions().prefetch_batches)
      .def("__iter__", [](py::object self) { return self; })
      .def("__next__", [](PythonDeviceLoader& self) { return NextOf(self.loader()); })
      .def_property_readonly(
          "cursor",
          [](const PythonDeviceLoader& self) { return CursorToText(self.loader().cursor()); })
      .def_property_readonly(
          "epoch", [](const PythonDeviceLoader& self) { return self.loader().cursor().epoch; })
      .def_property_readonly(
          "pinned", [](const PythonDeviceLoader& self) { return self.loader().stats().pinned; })
      .def_property_readonly(
          "decoded_by",
          [](const PythonDeviceLoader& self) { return DecodedBy(self.loader().stats()); },
          "With decode: images so far, by the GPU's JPEG engines, by nvJPEG's hybrid decoder and "
          "by the CPU.")
      .def(
          "stats", [](const PythonDeviceLoader& self) { return StatsOf(self.loader().stats()); },
          "A dict. fallbacks counts what the GPU was to do and the CPU does, why_fallback says why "
          "of the first one.")
      .def("take_bad_samples",
           [](PythonDeviceLoader& self) { return BadSampleRows(self.loader().TakeBadSamples()); })
      .def("stop", [](PythonDeviceLoader& self) { self.loader().Stop(); });
  py::class_<ResidentLoader>(
      module, "ResidentLoader",
      "Batches of a dataset that fits on the device: decoded once to width x height, then gathered "
      "there. decode: a Decode whose random or central crop every batch takes of them.")
      .def(py::init(&OpenResident), py::arg("dataset"), py::arg("order"), py::arg("device"),
           py::arg("width"), py::arg("height"), py::kw_only(), py::arg("decode") = py::none(),
           py::arg("rank") = 0, py::arg("world_size") = 1, py::arg("dtype") = "float16",
           py::arg("layout") = "nchw", py::arg("mean") = output.mean, py::arg("std") = output.std,
           py::arg("epochs") = 0, py::arg("augment_seed") = 0, py::arg("cursor") = py::none(),
           py::arg("threads") = 0)
      .def("__iter__", [](py::object self) { return self; })
      .def("__next__", &NextOf<ResidentLoader>)
      .def_property_readonly("cursor",
                             [](const ResidentLoader& self) { return CursorToText(self.cursor()); })
      .def_property_readonly("epoch",
                             [](const ResidentLoader& self) { return self.cursor().epoch; });
}

}  // namespace shardpack::python

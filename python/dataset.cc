#include "readers/dataset/dataset.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <vector>

#include "python/bindings.h"

namespace shardpack::python {
namespace {

namespace py = pybind11;

// Converts bytes from the file system to text like os.fsdecode.
py::str FileSystemText(const std::string& bytes) {
  return py::reinterpret_steal<py::str>(
      PyUnicode_DecodeFSDefaultAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size())));
}

py::dict SampleOf(const Dataset& dataset, uint64_t id) {
  absl::StatusOr<OwnedSample> read = absl::UnknownError("");
  {
    const py::gil_scoped_release released;
    read = dataset.Read(id);
  }
  const OwnedSample sample = ValueOrThrow(std::move(read));
  py::dict fields;
  for (const OwnedSample::Field& field : sample.fields)
    fields[py::str(field.name)] = py::bytes(field.bytes);
  py::dict out;
  out["key"] = FileSystemText(sample.key);
  out["source_path"] = FileSystemText(sample.source_path);
  out["label"] = sample.label;
  out["width"] = sample.image.width;
  out["height"] = sample.image.height;
  out["fields"] = fields;
  return out;
}

}  // namespace

void AddDataset(py::module_& module) {
  py::class_<Dataset>(module, "Dataset",
                      "A packed dataset: numbered samples, read with their hashes checked. "
                      "dataset[i] is a dict with key, label and the bytes of every field.")
      .def(py::init([](const std::string& path) { return ValueOrThrow(Dataset::Open(path)); }),
           py::arg("path"))
      .def_static(
          "join",
          [](const std::vector<Dataset>& parts) { return ValueOrThrow(Dataset::Join(parts)); },
          py::arg("parts"), "Several datasets of the same classes as one row of samples.")
      .def(
          "split",
          [](const Dataset& dataset, const std::string& name) {
            return ValueOrThrow(dataset.Split(name));
          },
          py::arg("name"), "The samples of one split alone.")
      .def("__len__", [](const Dataset& dataset) { return dataset.size(); })
      .def("__getitem__", &SampleOf, py::arg("id"))
      .def(
          "find_key",
          [](const Dataset& dataset, const std::string& key) {
            const absl::StatusOr<uint64_t> id = dataset.FindKey(key);
            if (absl::IsNotFound(id.status())) throw py::key_error(key);
            return ValueOrThrow(id);
          },
          py::arg("key"), "The number of the sample with this key.")
      .def_property_readonly("classes",
                             [](const Dataset& dataset) {
                               py::list names;
                               for (const std::string& name : dataset.classes())
                                 names.append(FileSystemText(name));
                               return names;
                             })
      .def_property_readonly("format", &Dataset::format)
      .def_property_readonly(
          "identity", [](const Dataset& dataset) { return "xxh3:" + dataset.identity().ToHex(); });
}

}  // namespace shardpack::python

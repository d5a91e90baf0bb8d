#include "python/decode.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <string>
#include <utility>

#include "images/augment/pixel_pipeline.h"
#include "python/bindings.h"

namespace shardpack::python {
namespace {

namespace py = pybind11;

template <typename T>
T Choose(const std::string& name, const char* what,
         std::initializer_list<std::pair<const char*, T>> choices) {
  std::string known;
  for (const auto& [text, value] : choices) {
    if (name == text) return value;
    known += (known.empty() ? "'" : ", '") + std::string(text) + "'";
  }
  throw py::value_error(std::string(what) + " is one of " + known);
}

PixelPipelineOptions MakeDecode(uint32_t width, uint32_t height, const std::string& crop,
                                std::pair<double, double> scale, std::pair<double, double> ratio,
                                uint32_t shortest_side, double flip, const std::string& filter,
                                uint8_t channels, const std::string& dtype,
                                const std::string& layout, std::array<float, 3> mean,
                                std::array<float, 3> std, bool fast) {
  PixelPipelineOptions options;
  options.crop.kind = Choose<CropKind>(crop, "crop",
                                       {{"random_resized", CropKind::kRandomResized},
                                        {"center", CropKind::kCenter},
                                        {"resize", CropKind::kResize}});
  options.crop.width = width;
  options.crop.height = height;
  options.crop.min_scale = scale.first;
  options.crop.max_scale = scale.second;
  options.crop.min_ratio = ratio.first;
  options.crop.max_ratio = ratio.second;
  options.crop.shortest_side = shortest_side;
  options.crop.flip_probability = flip;
  options.filter = FilterOf(filter);
  options.channels = channels;
  options.output = OutputOf(dtype, layout, mean, std);
  if (options.output.type == PixelType::kBf16)
    throw py::value_error("NumPy has no bfloat16; a DeviceLoader casts to it");
  options.fast = fast;
  ThrowIfError(PixelPipeline::Create(options).status());  // reports impossible options early
  return options;
}

}  // namespace

OutputFormat OutputOf(const std::string& dtype, const std::string& layout,
                      const std::array<float, 3>& mean, const std::array<float, 3>& std) {
  OutputFormat output;
  output.type = Choose<PixelType>(dtype, "dtype",
                                  {{"uint8", PixelType::kU8},
                                   {"float32", PixelType::kF32},
                                   {"float16", PixelType::kF16},
                                   {"bfloat16", PixelType::kBf16}});
  output.layout = Choose<PixelLayout>(layout, "layout",
                                      {{"nhwc", PixelLayout::kNhwc}, {"nchw", PixelLayout::kNchw}});
  output.mean = mean;
  output.std = std;
  return output;
}

ResizeFilter FilterOf(const std::string& name) {
  return Choose<ResizeFilter>(name, "filter",
                              {{"box", ResizeFilter::kBox},
                               {"bilinear", ResizeFilter::kBilinear},
                               {"bicubic", ResizeFilter::kBicubic},
                               {"lanczos", ResizeFilter::kLanczos}});
}

void AddDecode(py::module_& module) {
  const CropOptions crop;
  const OutputFormat output;
  py::class_<PixelPipelineOptions>(
      module, "Decode", "Decoding to arrays of one size: crop, antialiased resize, flip, type.")
      .def(py::init(&MakeDecode), py::arg("width") = crop.width, py::arg("height") = crop.height,
           py::kw_only(), py::arg("crop") = "random_resized",
           py::arg("scale") = std::pair(crop.min_scale, crop.max_scale),
           py::arg("ratio") = std::pair(crop.min_ratio, crop.max_ratio),
           py::arg("shortest_side") = crop.shortest_side, py::arg("flip") = 0.0,
           py::arg("filter") = "bilinear", py::arg("channels") = 3, py::arg("dtype") = "uint8",
           py::arg("layout") = "nhwc", py::arg("mean") = output.mean, py::arg("std") = output.std,
           py::arg("fast") = false,
           "crop: 'random_resized', 'center' (of shortest_side) or 'resize'. mean, std: of numbers "
           "from 0 to 1, for dtype 'float32' and 'float16'.");
}

}  // namespace shardpack::python

#include "readers/order/order.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "python/array_view.h"
#include "python/bindings.h"

namespace shardpack::python {
namespace {

namespace py = pybind11;

OrderMode ModeOf(const std::string& name) {
  if (name == "sequential") return OrderMode::kSequential;
  if (name == "shuffle") return OrderMode::kShuffle;
  if (name == "block_shuffle") return OrderMode::kBlockShuffle;
  throw py::value_error("mode is 'sequential', 'shuffle' or 'block_shuffle'");
}

Tail TailOf(const std::string& name) {
  if (name == "drop") return Tail::kDrop;
  if (name == "pad") return Tail::kPad;
  throw py::value_error("tail is 'drop' or 'pad'");
}

Order MakeOrder(uint64_t samples, uint32_t global_batch, const std::string& mode, uint64_t seed,
                const std::string& tail, uint32_t block_samples, uint32_t window_blocks,
                const std::optional<py::object>& subset,
                const std::vector<std::tuple<uint64_t, uint64_t, double>>& mixture,
                uint64_t epoch_samples) {
  OrderSpec spec{.samples = samples,
                 .mode = ModeOf(mode),
                 .seed = seed,
                 .global_batch = global_batch,
                 .tail = TailOf(tail),
                 .block_samples = block_samples,
                 .window_blocks = window_blocks,
                 .epoch_samples = epoch_samples};
  if (subset)
    spec.subset = std::make_shared<const std::vector<uint64_t>>(ArrayView::Numbers(*subset));
  for (const auto& [first_id, count, weight] : mixture)
    spec.mixture.push_back({.first_id = first_id, .samples = count, .weight = weight});
  return ValueOrThrow(Order::Make(std::move(spec)));
}

py::object IdsOf(const Order& order, uint64_t epoch, uint64_t step) {
  std::vector<uint64_t> ids(order.spec().global_batch);
  order.Ids(epoch, step, 0, ids);
  return ArrayView::Copy(std::span<const uint64_t>(ids));
}

}  // namespace

void AddOrder(py::module_& module) {
  module.attr("PADDING_ID") = kPaddingId;
  py::class_<Order>(module, "Order",
                    "Which sample stands where in an epoch: a pure function of seed and epoch.")
      .def(py::init(&MakeOrder), py::arg("samples"), py::arg("global_batch"), py::kw_only(),
           py::arg("mode") = "shuffle", py::arg("seed") = 0, py::arg("tail") = "drop",
           py::arg("block_samples") = OrderSpec().block_samples,
           py::arg("window_blocks") = OrderSpec().window_blocks, py::arg("subset") = py::none(),
           py::arg("mixture") = py::list(), py::arg("epoch_samples") = 0,
           "subset: ids that stand for the samples. mixture: (first_id, samples, weight) of each "
           "dataset of a join.")
      .def_property_readonly("steps", &Order::steps)
      .def_property_readonly("samples", &Order::samples)
      .def("ids", &IdsOf, py::arg("epoch"), py::arg("step"),
           "The samples of a global batch; PADDING_ID where there is none.")
      .def("__repr__", [](const Order& order) { return "<Order " + order.explain() + ">"; });
}

}  // namespace shardpack::python

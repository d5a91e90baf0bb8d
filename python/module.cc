// The Python module `shardpack`: a thin wrapper of the readers. One file per public header of
// readers/.
#include <pybind11/pybind11.h>

#include "python/array_view.h"
#include "python/bindings.h"
#include "python/device.h"
#include "python/tensor.h"

PYBIND11_MODULE(shardpack, module) {
  module.doc() =
      "Batches of packed datasets, in exact global order, verified, decoded if wanted.\n\n"
      "  dataset = shardpack.Dataset('OUT')\n"
      "  order = shardpack.Order(len(dataset), global_batch=256, seed=7)\n"
      "  loader = shardpack.Loader(dataset, order, decode=shardpack.Decode(224, 224, flip=0.5))\n"
      "  for batch in loader:    # one epoch; iterate again for the next\n"
      "      images, labels = torch.from_numpy(batch.pixels), torch.from_numpy(batch.labels)";
  shardpack::python::AddErrors(module);
  shardpack::python::ArrayView::Add(module);
  shardpack::python::AddDataset(module);
  shardpack::python::AddOrder(module);
  shardpack::python::AddDecode(module);
  shardpack::python::AddHostBatch(module);
  shardpack::python::Device::Add(module);
  shardpack::python::Tensor::Add(module);
  shardpack::python::AddLoader(module);
  shardpack::python::AddDeviceLoader(module);
}

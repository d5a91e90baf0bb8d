// What a Python Loader is made of: other files of the module take it over.
//
//   Loader loader = python_loader.Take();   // by a DeviceLoader, which then owns its threads
//
// Lifetime: the memory outlives the loader. Thread-safety: with the GIL held. Errors: a Python
// ValueError once the loader was taken.
#ifndef SHARDPACK_PYTHON_LOADER_H_
#define SHARDPACK_PYTHON_LOADER_H_

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>
#include <utility>

#include "python/device.h"
#include "readers/host_memory.h"
#include "readers/loader.h"

namespace shardpack::python {

class PythonLoader {
 public:
  PythonLoader(std::shared_ptr<HostMemory> memory, Loader loader, LoaderOptions options,
               std::optional<Device> device)
      : memory_(std::move(memory)),
        loader_(std::move(loader)),
        options_(std::move(options)),
        device_(device) {}

  const std::shared_ptr<HostMemory>& memory() const { return memory_; }
  const LoaderOptions& options() const { return options_; }
  const std::optional<Device>& device() const { return device_; }  // whose pinned memory it uses
  Loader& loader() {
    if (!loader_) throw pybind11::value_error("a DeviceLoader has taken this loader");
    return *loader_;
  }
  Loader Take() {
    Loader taken = std::move(loader());
    loader_.reset();
    return taken;
  }

 private:
  std::shared_ptr<HostMemory> memory_;  // declared first: it goes last
  std::optional<Loader> loader_;
  LoaderOptions options_;
  std::optional<Device> device_;
};

}  // namespace shardpack::python

#endif  // SHARDPACK_PYTHON_LOADER_H_

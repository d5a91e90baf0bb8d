// The parts of a Python Loader, which other files of the module can take over.
//
//   auto held = python_loader.Take();   // by a DeviceLoader, which then owns its threads
//
// Lifetime: the memory outlives the loader.
// Thread-safety: with the GIL held.
// Errors: a Python ValueError once the loader was taken.
#ifndef SHARDPACK_PYTHON_LOADER_H_
#define SHARDPACK_PYTHON_LOADER_H_

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>
#include <utility>

#include "python/device.h"
#include "python/waiting.h"
#include "readers/loading/host_memory.h"
#include "readers/loading/loader.h"

namespace shardpack::python {

struct HeldLoader {
  std::shared_ptr<HostMemory> memory;  // declared first, so destroyed last
  Loader loader;
};

class PythonLoader {
 public:
  PythonLoader(std::shared_ptr<HostMemory> memory, Loader loader, LoaderOptions options,
               std::optional<Device> device)
      : held_(std::make_unique<HeldLoader>(HeldLoader{std::move(memory), std::move(loader)})),
        options_(std::move(options)),
        device_(device) {}
  ~PythonLoader() { EndInTime(std::move(held_)); }
  PythonLoader(const PythonLoader&) = delete;
  PythonLoader& operator=(const PythonLoader&) = delete;

  const std::shared_ptr<HostMemory>& memory() { return held().memory; }
  const LoaderOptions& options() const { return options_; }
  const std::optional<Device>& device() const {
    return device_;
  }  // the device that provides pinned memory
  Loader& loader() { return held().loader; }
  std::unique_ptr<HeldLoader> Take() {
    (void)held();
    return std::move(held_);
  }

 private:
  HeldLoader& held() {
    if (held_ == nullptr) throw pybind11::value_error("a DeviceLoader has taken this loader");
    return *held_;
  }

  std::unique_ptr<HeldLoader> held_;
  LoaderOptions options_;
  std::optional<Device> device_;
};

}  // namespace shardpack::python

#endif  // SHARDPACK_PYTHON_LOADER_H_

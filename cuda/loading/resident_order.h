// ResidentOrder: what the steps of a resident set take from its table, on the device before they
// run: for as many steps at once as fit a window, which is an epoch unless that is large.
//
//   auto order = ResidentOrder::Create(device, memory, {.order = order, .labels = labels}, stream);
//   absl::StatusOr<ResidentStep> at = (*order)->At(epoch, step, stream);
//   // enqueue on the stream: a gather of at->rows and at->labels
//
// The first step of a window enqueues one copy, of rows or crops and labels; all others nothing. A
// thread makes the next window meanwhile, so a step costs the caller no work per sample on the
// order or on crops.
//
// For launches whose arguments are fixed, source() is a place on the device that names a step: what
// Name was called for last, in the order of its stream, and padding before.
//
// Lifetime: device, memory and labels outlive it. WaitUntilIdle comes before the destructor, or
// Leave instead of it; launches that take its steps have run before. On the host a step is valid
// until At is called again; on the device, for what was enqueued before that.
// Thread-safety: one thread at a time; its own thread calls `sample`.
// Errors: those of the memory and the device.
// Units: bytes.
#ifndef SHARDPACK_CUDA_LOADING_RESIDENT_ORDER_H_
#define SHARDPACK_CUDA_LOADING_RESIDENT_ORDER_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuda/device/device.h"
#include "cuda/device/device_event.h"
#include "cuda/kernels/preprocess.h"
#include "readers/loading/host_memory.h"
#include "readers/order/order.h"
#include "readers/order/rank.h"

namespace shardpack {

struct ResidentStep {
  // On the device, one a slot; `rows` or `samples`.
  const uint64_t* rows = nullptr;
  const PreprocessSample* samples = nullptr;
  const int64_t* labels = nullptr;
  // On the device too: a StepSource of these.
  const StepSource* source = nullptr;
  // The same on the host.
  std::span<const uint64_t> ids = {};
  std::span<const int64_t> host_labels = {};
};

struct ResidentOrderSpec {
  Order order;
  Rank rank;
  std::span<const int64_t> labels;  // of all samples
  // What is made of a sample in an epoch; nullptr: whole rows are taken as they are.
  std::function<PreprocessSample(uint64_t epoch, uint64_t id)> sample = nullptr;
  size_t window_bytes = size_t{8} << 20;  // at most, but at least a step
};

class ResidentOrder {
 public:
  // Waits for the stream.
  static absl::StatusOr<std::unique_ptr<ResidentOrder>> Create(Device& device, HostMemory& memory,
                                                               ResidentOrderSpec spec,
                                                               Stream stream);
  ~ResidentOrder();
  // Instead of the destructor if the device may still use it: never frees it. What the
  // specification refers to is not used any more.
  static void Leave(std::unique_ptr<ResidentOrder> order);
  ResidentOrder(const ResidentOrder&) = delete;
  ResidentOrder& operator=(const ResidentOrder&) = delete;

  // Whether At would not wait, for the device or for the thread.
  absl::StatusOr<bool> IsReady(uint64_t epoch, uint64_t step);
  absl::StatusOr<ResidentStep> At(uint64_t epoch, uint64_t step, Stream stream);
  // Enqueues that source() names this step, which At gave last.
  absl::Status Name(const ResidentStep& step, Stream stream);
  const StepSource* source() const { return source_; }
  // Whether the copies that it has enqueued are done; polls, so that it returns even if the device
  // hangs, or the stream waits for something.
  bool WaitUntilIdle(std::chrono::milliseconds patience);
  uint64_t uploaded_bytes() const { return uploaded_bytes_; }

 private:
  struct Window {
    explicit Window(Device& device) : copied(device, nullptr) {}
    uint64_t epoch = 0, first = 0, steps = 0;  // without steps: none
    std::vector<uint64_t> ids;
    std::span<std::byte> host;
    void* device = nullptr;
    DeviceEvent copied;
    std::future<void> made;

    bool Has(uint64_t an_epoch, uint64_t step) const {
      return epoch == an_epoch && step >= first && step < first + steps;
    }
  };

  ResidentOrder(Device& device, HostMemory& memory, ResidentOrderSpec spec);
  size_t entry_bytes() const;  // of a slot, without its label
  // What lies where in a window of so many steps: entries, labels, and a StepSource a step.
  size_t LabelsAt(uint64_t steps) const { return steps * slots_ * entry_bytes(); }
  size_t SourcesAt(uint64_t steps) const {
    return LabelsAt(steps) + steps * slots_ * sizeof(int64_t);
  }
  size_t WindowBytes(uint64_t steps) const { return SourcesAt(steps) + steps * sizeof(StepSource); }
  void PutEntries(uint64_t epoch, std::span<const uint64_t> ids, std::byte* to) const;
  // Pointers to the device.
  StepSource SourceAt(const std::byte* entries, const std::byte* labels) const;
  StepSource SourceOf(const Window& window, uint64_t nth) const;
  absl::Status MakeRoom(Window& window);
  // So that a launch before the first step takes padding.
  absl::Status NamePadding(Stream stream);
  // Begins to make the window that has this step first.
  absl::Status Begin(Window& window, uint64_t epoch, uint64_t first);
  void Make(Window& window) const;  // on a thread
  absl::Status Upload(Window& window, Stream stream);

  Device& device_;
  HostMemory& memory_;
  const ResidentOrderSpec spec_;
  const uint32_t slots_;
  const uint64_t window_steps_;
  std::array<Window, 2> windows_;
  size_t now_ = 0;
  StepSource* source_ = nullptr;  // on the device, with the entries and labels of padding after it
  DeviceEvent named_;
  uint64_t uploaded_bytes_ = 0;
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_LOADING_RESIDENT_ORDER_H_

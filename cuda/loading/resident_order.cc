#include "cuda/loading/resident_order.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>

#include "cuda/device/leak.h"
#include "formats/core/sample.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

size_t EntryBytes(const ResidentOrderSpec& spec) {
  return spec.sample == nullptr ? sizeof(uint64_t) : sizeof(PreprocessSample);
}

uint64_t WindowSteps(const ResidentOrderSpec& spec, uint32_t slots) {
  const size_t step_bytes = slots * (EntryBytes(spec) + sizeof(int64_t)) + sizeof(StepSource);
  return std::clamp<uint64_t>(spec.window_bytes / step_bytes, 1, spec.order.steps());
}

}  // namespace

ResidentOrder::ResidentOrder(Device& device, HostMemory& memory, ResidentOrderSpec spec)
    : device_(device),
      memory_(memory),
      spec_(std::move(spec)),
      slots_(spec_.rank.slots(spec_.order.spec().global_batch)),
      window_steps_(WindowSteps(spec_, slots_)),
      windows_{Window(device), Window(device)} {}

size_t ResidentOrder::entry_bytes() const { return EntryBytes(spec_); }

absl::StatusOr<std::unique_ptr<ResidentOrder>> ResidentOrder::Create(Device& device,
                                                                     HostMemory& memory,
                                                                     ResidentOrderSpec spec) {
  std::unique_ptr<ResidentOrder> made(new ResidentOrder(device, memory, std::move(spec)));
  for (Window& window : made->windows_) RETURN_IF_ERROR(made->MakeRoom(window));
  return made;
}

absl::Status ResidentOrder::MakeRoom(Window& window) {
  const size_t bytes = WindowBytes(window_steps_);
  ASSIGN_OR_RETURN(window.host, memory_.Allocate(bytes));
  ASSIGN_OR_RETURN(window.device, device_.Allocate(bytes, "the order of an epoch"));
  return absl::OkStatus();
}

ResidentOrder::~ResidentOrder() {
  for (Window& window : windows_) {
    if (window.made.valid()) window.made.wait();
    // A lost device may still read and write there.
    if (window.device != nullptr && !device_.lost()) (void)device_.Free(window.device);
    if (!window.host.empty() && !device_.lost()) memory_.Free(window.host);
  }
}

void ResidentOrder::Leave(std::unique_ptr<ResidentOrder> order) {
  if (order == nullptr) return;
  for (const Window& window : order->windows_) {
    if (window.made.valid()) window.made.wait();
  }
  Leak(std::move(order));
}

void ResidentOrder::Make(Window& window) const {
  const size_t count = window.steps * slots_;
  window.ids.resize(count);
  const uint32_t first_slot = spec_.rank.first_slot(spec_.order.spec().global_batch);
  for (uint64_t i = 0; i < window.steps; ++i) {
    spec_.order.Ids(window.epoch, window.first + i, first_slot,
                    std::span(window.ids).subspan(i * slots_, slots_));
  }
  std::byte* const entries = window.host.data();
  if (spec_.sample == nullptr) {
    std::memcpy(entries, window.ids.data(), count * sizeof(uint64_t));
  } else {
    for (size_t i = 0; i < count; ++i) {
      const PreprocessSample sample = spec_.sample(window.epoch, window.ids[i]);
      std::memcpy(entries + i * sizeof(sample), &sample, sizeof(sample));
    }
  }
  auto* const labels = reinterpret_cast<int64_t*>(entries + LabelsAt(window.steps));
  for (size_t i = 0; i < count; ++i) {
    labels[i] = window.ids[i] == kPaddingId ? kNoLabel : spec_.labels[window.ids[i]];
  }
  for (uint64_t i = 0; i < window.steps; ++i) {
    const StepSource source = SourceOf(window, i);
    std::memcpy(entries + SourcesAt(window.steps) + i * sizeof(source), &source, sizeof(source));
  }
}

StepSource ResidentOrder::SourceOf(const Window& window, uint64_t nth) const {
  const auto* const entries = static_cast<const std::byte*>(window.device);
  const size_t at = nth * slots_;
  StepSource source;
  if (spec_.sample == nullptr) {
    source.rows = reinterpret_cast<const uint64_t*>(entries) + at;
  } else {
    source.samples = reinterpret_cast<const PreprocessSample*>(entries) + at;
  }
  source.labels = reinterpret_cast<const int64_t*>(entries + LabelsAt(window.steps)) + at;
  return source;
}

absl::Status ResidentOrder::Begin(Window& window, uint64_t epoch, uint64_t first) {
  if (window.made.valid()) window.made.wait();
  RETURN_IF_ERROR(window.copied.Wait());  // long done: its steps have been taken
  window.epoch = epoch;
  window.first = first;
  window.steps = std::min(window_steps_, spec_.order.steps() - first);
  const auto make = [this, &window] { Make(window); };
  try {
    window.made = std::async(std::launch::async, make);
  } catch (const std::system_error&) {  // no thread: when it is needed
    window.made = std::async(std::launch::deferred, make);
  }
  return absl::OkStatus();
}

absl::Status ResidentOrder::Upload(Window& window, Stream stream) {
  window.made.get();
  const size_t bytes = WindowBytes(window.steps);
  // Behind the steps of the window that was there.
  RETURN_IF_ERROR(device_.CopyToDevice(window.device, window.host.data(), bytes, stream));
  uploaded_bytes_ += bytes;
  return window.copied.Record(stream);
}

absl::StatusOr<bool> ResidentOrder::IsReady(uint64_t epoch, uint64_t step) {
  if (windows_[now_].Has(epoch, step)) return true;
  for (Window& window : windows_) {
    if (window.made.valid() &&
        window.made.wait_for(std::chrono::seconds(0)) == std::future_status::timeout) {
      return false;
    }
    ASSIGN_OR_RETURN(const bool copied, window.copied.IsDone());
    if (!copied) return false;
  }
  return true;
}

absl::StatusOr<ResidentStep> ResidentOrder::At(uint64_t epoch, uint64_t step, Stream stream) {
  if (!windows_[now_].Has(epoch, step)) {
    const size_t next = 1 - now_;
    if (!windows_[next].Has(epoch, step) || !windows_[next].made.valid()) {
      RETURN_IF_ERROR(Begin(windows_[next], epoch, step));
    }
    RETURN_IF_ERROR(Upload(windows_[next], stream));
    const Window& window = windows_[next];
    const uint64_t after = window.first + window.steps;
    const bool ends = after == spec_.order.steps();
    RETURN_IF_ERROR(Begin(windows_[now_], epoch + (ends ? 1 : 0), ends ? 0 : after));
    now_ = next;
  }
  const Window& window = windows_[now_];
  const uint64_t nth = step - window.first, at = nth * slots_;
  const size_t labels = LabelsAt(window.steps) + at * sizeof(int64_t);
  const StepSource source = SourceOf(window, nth);
  ResidentStep found{.rows = source.rows, .samples = source.samples, .labels = source.labels};
  found.source = reinterpret_cast<const StepSource*>(static_cast<const std::byte*>(window.device) +
                                                     SourcesAt(window.steps)) +
                 nth;
  found.ids = std::span(window.ids).subspan(at, slots_);
  found.host_labels =
      std::span(reinterpret_cast<const int64_t*>(window.host.data() + labels), slots_);
  return found;
}

}  // namespace shardpack

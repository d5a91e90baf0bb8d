#include "cuda/loading/resident_order.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

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
      windows_{Window(device), Window(device)},
      named_(device, nullptr) {}

size_t ResidentOrder::entry_bytes() const { return EntryBytes(spec_); }

absl::StatusOr<std::unique_ptr<ResidentOrder>> ResidentOrder::Create(Device& device,
                                                                     HostMemory& memory,
                                                                     ResidentOrderSpec spec,
                                                                     Stream stream) {
  std::unique_ptr<ResidentOrder> made(new ResidentOrder(device, memory, std::move(spec)));
  for (Window& window : made->windows_) RETURN_IF_ERROR(made->MakeRoom(window));
  RETURN_IF_ERROR(made->NamePadding(stream));
  return made;
}

absl::Status ResidentOrder::MakeRoom(Window& window) {
  const size_t bytes = WindowBytes(window_steps_);
  ASSIGN_OR_RETURN(window.host, memory_.Allocate(bytes));
  ASSIGN_OR_RETURN(window.device, device_.Allocate(bytes, "the order of an epoch"));
  return absl::OkStatus();
}

absl::Status ResidentOrder::NamePadding(Stream stream) {
  const size_t entries_at = DeviceAligned(sizeof(StepSource));
  const size_t labels_at = entries_at + slots_ * entry_bytes();
  std::vector<std::byte> bytes(labels_at + slots_ * sizeof(int64_t));
  ASSIGN_OR_RETURN(void* const memory, device_.Allocate(bytes.size(), "a step of padding"));
  source_ = static_cast<StepSource*>(memory);
  auto* const there = static_cast<std::byte*>(memory);
  const StepSource padding = SourceAt(there + entries_at, there + labels_at);
  std::memcpy(bytes.data(), &padding, sizeof(padding));
  const std::vector<uint64_t> ids(slots_, kPaddingId);
  PutEntries(0, ids, bytes.data() + entries_at);
  const std::vector<int64_t> labels(slots_, kNoLabel);
  std::memcpy(bytes.data() + labels_at, labels.data(), slots_ * sizeof(int64_t));
  RETURN_IF_ERROR(device_.CopyToDevice(memory, bytes.data(), bytes.size(), stream));
  return device_.Synchronize(stream);
}

ResidentOrder::~ResidentOrder() {
  for (Window& window : windows_) {
    if (window.made.valid()) window.made.wait();
    // A lost device may still read and write there.
    if (window.device != nullptr && !device_.lost()) (void)device_.Free(window.device);
    if (!window.host.empty() && !device_.lost()) memory_.Free(window.host);
  }
  if (source_ != nullptr && !device_.lost()) (void)device_.Free(source_);
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
  PutEntries(window.epoch, window.ids, entries);
  auto* const labels = reinterpret_cast<int64_t*>(entries + LabelsAt(window.steps));
  for (size_t i = 0; i < count; ++i) {
    labels[i] = window.ids[i] == kPaddingId ? kNoLabel : spec_.labels[window.ids[i]];
  }
  for (uint64_t i = 0; i < window.steps; ++i) {
    const StepSource source = SourceOf(window, i);
    std::memcpy(entries + SourcesAt(window.steps) + i * sizeof(source), &source, sizeof(source));
  }
}

void ResidentOrder::PutEntries(uint64_t epoch, std::span<const uint64_t> ids, std::byte* to) const {
  if (spec_.sample == nullptr) {
    std::memcpy(to, ids.data(), ids.size_bytes());
    return;
  }
  for (const uint64_t id : ids) {
    const PreprocessSample sample = spec_.sample(epoch, id);
    std::memcpy(to, &sample, sizeof(sample));
    to += sizeof(sample);
  }
}

StepSource ResidentOrder::SourceAt(const std::byte* entries, const std::byte* labels) const {
  StepSource source;
  if (spec_.sample == nullptr) {
    source.rows = reinterpret_cast<const uint64_t*>(entries);
  } else {
    source.samples = reinterpret_cast<const PreprocessSample*>(entries);
  }
  source.labels = reinterpret_cast<const int64_t*>(labels);
  return source;
}

StepSource ResidentOrder::SourceOf(const Window& window, uint64_t nth) const {
  const auto* const entries = static_cast<const std::byte*>(window.device);
  const size_t at = nth * slots_;
  return SourceAt(entries + at * entry_bytes(),
                  entries + LabelsAt(window.steps) + at * sizeof(int64_t));
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

absl::Status ResidentOrder::Name(const ResidentStep& step, Stream stream) {
  RETURN_IF_ERROR(device_.CopyWithin(source_, step.source, sizeof(*source_), stream));
  return named_.Record(stream);
}

bool ResidentOrder::WaitUntilIdle(std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (DeviceEvent* const event : {&windows_[0].copied, &windows_[1].copied, &named_}) {
    for (;;) {
      const absl::StatusOr<bool> done = event->IsDone();
      if (done.ok() && *done) break;
      if (device_.lost() || std::chrono::steady_clock::now() >= deadline) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }
  return true;
}

}  // namespace shardpack

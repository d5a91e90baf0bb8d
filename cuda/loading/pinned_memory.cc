#include "cuda/loading/pinned_memory.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cuda/kernels/run_on_threads.h"
#include "formats/io/resources.h"

namespace shardpack {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kTouchBytes = size_t{16} << 20;  // a thread is not worth it for less

// Pages come from this NUMA node when they are first touched, if it has any left (mbind(2),
// MPOL_PREFERRED).
void PreferNode(std::span<std::byte> memory, int node) {
  constexpr int kPreferred = 1;
  if (node < 0 || node >= 64) return;
  const unsigned long nodes = 1ul << node;
  (void)::syscall(SYS_mbind, memory.data(), memory.size(), kPreferred, &nodes, 65ul, 0u);
}

}  // namespace

void LogToStderr(const std::string& line) { std::fprintf(stderr, "shardpack: %s\n", line.c_str()); }

PinnedMemory::PinnedMemory(Device& device, PinnedMemoryOptions options)
    : device_(device),
      options_(std::move(options)),
      process_(::getpid()),
      pageable_allowed_(options_.pageable_fallback) {}

uint64_t& PinnedMemory::BytesOf(Kind kind) {
  switch (kind) {
    case Kind::kRegistered:
      return stats_.registered_bytes;
    case Kind::kDriver:
      return stats_.driver_bytes;
    default:
      return stats_.pageable_bytes;
  }
}

void PinnedMemory::set_pageable_allowed(bool allowed) {
  const std::lock_guard lock(mutex_);
  pageable_allowed_ = allowed;
}

PinnedMemoryStats PinnedMemory::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

// Under mutex_.
void PinnedMemory::Refused(const absl::Status& status, const char* next) {
  const std::string why(status.message());
  if (stats_.refusals++ == 0) stats_.why = why;
  if (options_.log != nullptr && stats_.refusals <= 2) options_.log(absl::StrCat(why, "; ", next));
}

absl::StatusOr<std::span<std::byte>> PinnedMemory::Allocate(size_t bytes) {
  if (::getpid() != process_) {
    return absl::FailedPreconditionError(
        "pinned memory belongs to the process that made it, before a fork; make it after");
  }
  const std::lock_guard lock(mutex_);
  if (bytes > options_.budget_bytes - std::min(used_bytes_, options_.budget_bytes)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        bytes, " bytes of pinned memory are wanted, ", used_bytes_, " of the budget of ",
        options_.budget_bytes, " are used: raise the budget, or lower memory_bytes of the loader"));
  }
  absl::StatusOr<std::span<std::byte>> memory = AllocateOfBudget(bytes);
  if (memory.ok()) used_bytes_ += bytes;
  return memory;
}

absl::StatusOr<std::span<std::byte>> PinnedMemory::AllocateOfBudget(size_t bytes) {
  if (!std::exchange(info_asked_, true)) {
    const absl::StatusOr<DeviceInfo> info = device_.Info();
    if (info.ok()) host_numa_node_ = info->host_numa_node;
  }
  absl::StatusOr<std::span<std::byte>> memory = mappings_.Allocate(bytes);
  if (!memory.ok()) return memory.status();
  mappings_.SetInherited(*memory, false);
  PreferNode(*memory, host_numa_node_);
  Touch(*memory);
  Kind kind = Kind::kRegistered;
  if (absl::Status registered = device_.RegisterHost(memory->data(), bytes); !registered.ok()) {
    Refused(registered, "asking the driver for such memory");
    absl::StatusOr<void*> driver = registered;
    if (!device_.lost()) driver = device_.AllocateHost(bytes);
    if (driver.ok()) {
      mappings_.Free(*memory);
      memory = std::span(static_cast<std::byte*>(*driver), bytes);
      kind = Kind::kDriver;
    } else if (device_.lost() || !pageable_allowed_) {
      Refused(driver.status(), "none is given");
      mappings_.Free(*memory);
      if (device_.lost()) return driver.status();
      return absl::ResourceExhaustedError(std::string(driver.status().message()));
    } else {
      Refused(driver.status(), "it stays pageable, and copies from it are slow");
      mappings_.SetInherited(*memory, true);
      kind = Kind::kPageable;
    }
  }
  kinds_[memory->data()] = kind;
  BytesOf(kind) += bytes;
  return memory;
}

// Page faults take the time, so several threads take them. One word a page is enough.
void PinnedMemory::Touch(std::span<std::byte> memory) const {
  size_t threads = static_cast<size_t>(options_.touch_threads > 0 ? options_.touch_threads
                                                                  : std::min(AvailableCores(), 4));
  threads = std::clamp<size_t>(memory.size() / kTouchBytes, 1, threads);
  const size_t pages = (memory.size() + kPageBytes - 1) / kPageBytes;
  const auto touch = [&](size_t part) {
    for (size_t page = pages * part / threads; page < pages * (part + 1) / threads; ++page)
      memory[page * kPageBytes] = std::byte{0};
  };
  std::atomic<size_t> next{0};
  RunOnThreads(threads, [&](size_t) {
    for (size_t part; (part = next.fetch_add(1)) < threads;) touch(part);
  });
}

void PinnedMemory::Free(std::span<std::byte> memory) {
  if (::getpid() != process_) return;  // the memory is the parent's
  const std::lock_guard lock(mutex_);
  const auto found = kinds_.find(memory.data());
  if (found == kinds_.end()) return;
  const Kind kind = found->second;
  if (!device_.lost()) {
    if (kind == Kind::kRegistered) (void)device_.UnregisterHost(memory.data());
    if (kind == Kind::kDriver) (void)device_.FreeHost(memory.data());
  }
  kinds_.erase(found);
  BytesOf(kind) -= memory.size();
  used_bytes_ -= memory.size();
  // Memory that a lost device may still read stays mapped.
  if (kind == Kind::kPageable || (kind == Kind::kRegistered && !device_.lost())) {
    mappings_.Free(memory);
  }
}

}  // namespace shardpack

// PinnedMemory: a HostMemory that a device copies from at full speed, without the host waiting.
//
//   PinnedMemory memory(device, {.budget_bytes = 512 << 20});
//   absl::StatusOr<Loader> loader = Loader::Open(dataset, order, rank, options, memory);
//   if (memory.stats().pageable_bytes > 0) ...   // slow copies; stats().why says why
//
// Memory is mapped 2 MiB-aligned, touched by a few threads, then page-locked in one call, which is
// several times faster than asking the driver for it. If that is refused the driver is asked
// (Device::AllocateHost), and if it refuses too, the memory stays pageable, or Allocate fails, as
// the options say; each step is counted and logged, once a kind. Children of a fork do not have
// page-locked memory: a device reads the pages of this process, which a fork would copy or take
// from it. A batch must not be touched there.
//
// Lifetime: outlives every loader and batch that uses it; the device outlives it. Memory that is
// still allocated at its end, and all of it on a lost device, is left to the end of the process.
// Thread-safety: any thread.
// Errors: ResourceExhausted beyond the budget or without memory, with the first cause;
// FailedPrecondition in a forked child.
// Units: bytes.
#ifndef SHARDPACK_CUDA_LOADING_PINNED_MEMORY_H_
#define SHARDPACK_CUDA_LOADING_PINNED_MEMORY_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "cuda/device/device.h"
#include "readers/loading/host_memory.h"

namespace shardpack {

// Writes one line to standard error.
void LogToStderr(const std::string& line);

struct PinnedMemoryOptions {
  uint64_t budget_bytes = uint64_t{512} << 20;
  bool pageable_fallback = true;
  int touch_threads = 0;  // 0: up to 4, as many as there are cores
  std::function<void(const std::string&)> log = LogToStderr;
};

struct PinnedMemoryStats {
  uint64_t registered_bytes = 0, driver_bytes = 0, pageable_bytes = 0;  // now
  uint64_t refusals = 0;                                                // of page locks
  std::string why;                                                      // of the first refusal
};

class PinnedMemory final : public HostMemory {
 public:
  explicit PinnedMemory(Device& device, PinnedMemoryOptions options = {});

  absl::StatusOr<std::span<std::byte>> Allocate(size_t bytes) override;
  void Free(std::span<std::byte> memory) override;
  PinnedMemoryStats stats() const;
  const PinnedMemoryOptions& options() const { return options_; }
  // Whether memory that cannot be page-locked is used anyway; at first as the options say.
  void set_pageable_allowed(bool allowed);

 private:
  enum class Kind : uint8_t { kRegistered, kDriver, kPageable };

  absl::StatusOr<std::span<std::byte>> AllocateOfBudget(size_t bytes);
  void Refused(const absl::Status& status, const char* next);
  void Touch(std::span<std::byte> memory) const;
  uint64_t& BytesOf(Kind kind);

  Device& device_;
  const PinnedMemoryOptions options_;
  const pid_t process_;
  int host_numa_node_ = -1;
  PageableMemory mappings_;
  mutable std::mutex mutex_;
  bool info_asked_ = false;
  bool pageable_allowed_;
  uint64_t used_bytes_ = 0;
  std::map<std::byte*, Kind> kinds_;
  PinnedMemoryStats stats_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_LOADING_PINNED_MEMORY_H_

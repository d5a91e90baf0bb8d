// HostMemory: where the slabs of batches live. PageableMemory: ordinary memory in huge pages.
//
//   PageableMemory memory;
//   absl::StatusOr<std::span<std::byte>> slab = memory.Allocate(16 << 20);
//   memory.Free(*slab);
//
// The seam through which pinned memory comes in (a HostMemory that registers what it allocates)
// without the readers knowing CUDA.
//
// Lifetime: must outlive every loader, fetcher and batch that uses it.
// Thread-safety: all methods from any thread.
// Errors: ResourceExhausted when the memory or a budget ends.
// Units: bytes.
#ifndef SHARDPACK_READERS_LOADING_HOST_MEMORY_H_
#define SHARDPACK_READERS_LOADING_HOST_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"

namespace shardpack {

class HostMemory {
 public:
  virtual ~HostMemory() = default;
  // Memory of exactly `bytes` (> 0) bytes, at least 64-byte aligned, readable and writable.
  virtual absl::StatusOr<std::span<std::byte>> Allocate(size_t bytes) = 0;
  // Takes back exactly what Allocate gave.
  virtual void Free(std::span<std::byte> memory) = 0;
};

// Anonymous mappings, 2 MiB-aligned and advised to be huge pages where they are that large.
class PageableMemory final : public HostMemory {
 public:
  // `budget_bytes`: the most that is allocated at once.
  explicit PageableMemory(uint64_t budget_bytes = UINT64_MAX) : budget_bytes_(budget_bytes) {}

  absl::StatusOr<std::span<std::byte>> Allocate(size_t bytes) override;
  void Free(std::span<std::byte> memory) override;
  // Whether children of a fork have what Allocate gave, as they do at first. Where they do not, who
  // touches it there dies of it (MADV_DONTFORK of madvise(2)). Ends with Free.
  void SetInherited(std::span<std::byte> memory, bool inherited);
  uint64_t allocated_bytes() const { return allocated_bytes_.load(std::memory_order_relaxed); }

 private:
  const uint64_t budget_bytes_;
  std::atomic<uint64_t> allocated_bytes_{0};
};

}  // namespace shardpack

#endif  // SHARDPACK_READERS_LOADING_HOST_MEMORY_H_

// HostMemory: allocates the slabs of batches. PageableMemory: ordinary memory in huge pages.
//
//   PageableMemory memory;
//   absl::StatusOr<std::span<std::byte>> slab = memory.Allocate(16 << 20);
//   memory.Free(*slab);
//
// An interface, so that pinned memory (a HostMemory that registers its allocations) can be used
// without making the readers depend on CUDA.
//
// Lifetime: must outlive every loader, fetcher and batch that uses it.
// Thread-safety: all methods from any thread.
// Errors: ResourceExhausted when out of memory or over budget.
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
  // Frees exactly one allocation.
  virtual void Free(std::span<std::byte> memory) = 0;
};

// Anonymous mappings, 2 MiB-aligned and advised as huge pages if they are that large.
class PageableMemory final : public HostMemory {
 public:
  // `budget_bytes`: the maximum allocated at any time.
  explicit PageableMemory(uint64_t budget_bytes = UINT64_MAX) : budget_bytes_(budget_bytes) {}

  absl::StatusOr<std::span<std::byte>> Allocate(size_t bytes) override;
  void Free(std::span<std::byte> memory) override;
  // Sets whether forked children inherit this allocation; by default they do. If not, touching it
  // in a child kills the child (MADV_DONTFORK of madvise(2)). Lasts until Free.
  void SetInherited(std::span<std::byte> memory, bool inherited);
  uint64_t allocated_bytes() const { return allocated_bytes_.load(std::memory_order_relaxed); }

 private:
  const uint64_t budget_bytes_;
  std::atomic<uint64_t> allocated_bytes_{0};
};

}  // namespace shardpack

#endif  // SHARDPACK_READERS_LOADING_HOST_MEMORY_H_

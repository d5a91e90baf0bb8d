// SlabPool: a fixed number of equal slabs in one block of HostMemory, leased to batches.
//
//   absl::StatusOr<std::shared_ptr<SlabPool>> pool = SlabPool::Create(memory, 4 << 20, 8);
//   absl::StatusOr<SlabLease> lease = (*pool)->Acquire(runs, wait);   // runs: {1, 1, 8} slabs
//   std::span<std::byte> first = lease->runs()[0];
//
// A lease is granted completely or not at all, so no holder of a partial lease ever waits for the
// rest. A run of several slabs is contiguous, for a sample larger than one slab. If the pool cannot
// serve a request (the run exceeds the pool, or a holder will not release), memory is allocated
// separately for the lease and freed with it.
//
// Lifetime: a lease keeps the pool alive; the HostMemory must outlive both.
// Thread-safety: any thread; only one Acquire may wait at a time.
// Errors: those of HostMemory.
// Units: bytes, slabs.
#ifndef SHARDPACK_READERS_LOADING_SLAB_POOL_H_
#define SHARDPACK_READERS_LOADING_SLAB_POOL_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "readers/loading/host_memory.h"

namespace shardpack {

class SlabPool;

// Move-only; the destructor returns the slabs.
class SlabLease {
 public:
  SlabLease() = default;
  SlabLease(SlabLease&& other) noexcept { *this = std::move(other); }
  SlabLease& operator=(SlabLease&& other) noexcept;
  ~SlabLease() { Return(); }

  // One span per run, in the requested order.
  std::span<const std::span<std::byte>> runs() const { return runs_; }
  void Return();

 private:
  friend class SlabPool;
  std::shared_ptr<SlabPool> pool_;
  std::vector<std::span<std::byte>> runs_;
  bool own_memory_ = false;  // outside the pool
};

class SlabPool : public std::enable_shared_from_this<SlabPool> {
 public:
  // What to do when too few slabs are free. Every Poke asks again.
  enum class Patience { kWait, kUrgent, kGiveUp };

  static absl::StatusOr<std::shared_ptr<SlabPool>> Create(HostMemory& memory, size_t slab_bytes,
                                                          size_t slabs);
  ~SlabPool();
  SlabPool(const SlabPool&) = delete;
  SlabPool& operator=(const SlabPool&) = delete;

  size_t slab_bytes() const { return slab_bytes_; }
  size_t slabs() const { return used_.size(); }

  // One contiguous run for each number of slabs. kWait waits for leases to be returned, kUrgent
  // allocates outside the pool, kGiveUp returns Cancelled.
  absl::StatusOr<SlabLease> Acquire(std::span<const size_t> run_slabs,
                                    const std::function<Patience()>& patience);
  // Wakes a waiting Acquire, which asks for its patience again.
  void Poke();

  // Bytes currently leased outside the pool, and the peak number of leased slabs.
  uint64_t overflow_bytes() const;
  size_t peak_slabs() const;

 private:
  friend class SlabLease;
  SlabPool(HostMemory& memory, std::span<std::byte> all, size_t slab_bytes)
      : memory_(memory), all_(all), slab_bytes_(slab_bytes), used_(all.size() / slab_bytes) {}

  // The first slab of each run, or nullopt if they do not fit now.
  std::optional<std::vector<size_t>> FindLocked(std::span<const size_t> run_slabs) const;
  absl::StatusOr<SlabLease> AllocateOutside(std::span<const size_t> run_slabs);
  void Take(SlabLease& lease);

  HostMemory& memory_;
  const std::span<std::byte> all_;
  const size_t slab_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<bool> used_;
  size_t used_count_ = 0, peak_ = 0;
  uint64_t overflow_bytes_ = 0;
};

}  // namespace shardpack

#endif  // SHARDPACK_READERS_LOADING_SLAB_POOL_H_

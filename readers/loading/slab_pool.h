// SlabPool: a fixed number of equal slabs in one piece of HostMemory, leased to batches.
//
//   absl::StatusOr<std::shared_ptr<SlabPool>> pool = SlabPool::Create(memory, 4 << 20, 8);
//   absl::StatusOr<SlabLease> lease = (*pool)->Acquire(runs, wait);   // runs: {1, 1, 8} slabs
//   std::span<std::byte> first = lease->runs()[0];
//
// A lease is taken whole or not at all, so those who hold a part never wait for the rest. A run of
// several slabs is contiguous: one sample larger than a slab lies in it. Where the pool cannot
// serve (a run beyond its size, or a holder that will not give back), memory of its own is
// allocated for the lease and freed with it.
//
// Lifetime: a lease keeps the pool alive; the HostMemory outlives both.
// Thread-safety: any thread; one Acquire that waits at a time.
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

// Move-only; the destructor gives back.
class SlabLease {
 public:
  SlabLease() = default;
  SlabLease(SlabLease&& other) noexcept { *this = std::move(other); }
  SlabLease& operator=(SlabLease&& other) noexcept;
  ~SlabLease() { Return(); }

  // One span a run, in the order asked for.
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
  // What to do when too few slabs are free. The answer is asked for again after every Poke.
  enum class Patience { kWait, kUrgent, kGiveUp };

  static absl::StatusOr<std::shared_ptr<SlabPool>> Create(HostMemory& memory, size_t slab_bytes,
                                                          size_t slabs);
  ~SlabPool();
  SlabPool(const SlabPool&) = delete;
  SlabPool& operator=(const SlabPool&) = delete;

  size_t slab_bytes() const { return slab_bytes_; }
  size_t slabs() const { return used_.size(); }

  // One contiguous piece for each number of slabs. kWait waits for leases to come back, kUrgent
  // allocates outside the pool, kGiveUp answers Cancelled.
  absl::StatusOr<SlabLease> Acquire(std::span<const size_t> run_slabs,
                                    const std::function<Patience()>& patience);
  // Wakes whoever waits, to look at its patience again.
  void Poke();

  // Bytes that leases hold outside the pool now, and the most slabs that were leased at once.
  uint64_t overflow_bytes() const;
  size_t peak_slabs() const;

 private:
  friend class SlabLease;
  SlabPool(HostMemory& memory, std::span<std::byte> all, size_t slab_bytes)
      : memory_(memory), all_(all), slab_bytes_(slab_bytes), used_(all.size() / slab_bytes) {}

  // First slabs of the runs, or nullopt when they do not fit now.
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

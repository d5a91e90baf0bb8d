#include "readers/loading/slab_pool.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

// Overwrites returned slabs in debug builds, to reveal code that still reads them.
void Poison([[maybe_unused]] std::span<std::byte> memory) {
#ifndef NDEBUG
  std::fill(memory.begin(), memory.end(), std::byte{0xDB});
#endif
}

}  // namespace

SlabLease& SlabLease::operator=(SlabLease&& other) noexcept {
  if (this == &other) return *this;
  Return();
  pool_ = std::move(other.pool_);
  runs_ = std::exchange(other.runs_, {});
  own_memory_ = other.own_memory_;
  return *this;
}

void SlabLease::Return() {
  if (pool_ == nullptr) return;
  pool_->Take(*this);
  pool_ = nullptr;
  runs_.clear();
}

absl::StatusOr<std::shared_ptr<SlabPool>> SlabPool::Create(HostMemory& memory, size_t slab_bytes,
                                                           size_t slabs) {
  if (slab_bytes == 0 || slabs == 0) return absl::InvalidArgumentError("a pool without slabs");
  ASSIGN_OR_RETURN(std::span<std::byte> all, memory.Allocate(slab_bytes * slabs));
  return std::shared_ptr<SlabPool>(new SlabPool(memory, all, slab_bytes));
}

SlabPool::~SlabPool() { memory_.Free(all_); }

std::optional<std::vector<size_t>> SlabPool::FindLocked(std::span<const size_t> run_slabs) const {
  std::vector<size_t> begins;
  std::vector<bool> used = used_;
  for (const size_t wanted : run_slabs) {
    size_t begin = 0, length = 0;
    while (length < wanted && begin + length < used.size()) {
      if (used[begin + length]) {
        begin += length + 1;
        length = 0;
      } else {
        ++length;
      }
    }
    if (length < wanted) return std::nullopt;
    std::fill_n(used.begin() + static_cast<ptrdiff_t>(begin), wanted, true);
    begins.push_back(begin);
  }
  return begins;
}

absl::StatusOr<SlabLease> SlabPool::AllocateOutside(std::span<const size_t> run_slabs) {
  SlabLease lease;
  lease.pool_ = shared_from_this();
  lease.own_memory_ = true;
  for (const size_t wanted : run_slabs) {
    ASSIGN_OR_RETURN(std::span<std::byte> run, memory_.Allocate(wanted * slab_bytes_));
    const std::lock_guard lock(mutex_);
    lease.runs_.push_back(run);
    overflow_bytes_ += run.size();
  }
  return lease;
}

absl::StatusOr<SlabLease> SlabPool::Acquire(std::span<const size_t> run_slabs,
                                            const std::function<Patience()>& patience) {
  size_t total = 0;
  for (const size_t wanted : run_slabs) total += wanted;
  const bool too_large = total > slabs();
  std::unique_lock lock(mutex_);
  for (;;) {
    // A request larger than the pool gets separate memory, but only if nothing else is leased.
    if (too_large && used_count_ == 0 && overflow_bytes_ == 0) {
      lock.unlock();
      return AllocateOutside(run_slabs);
    }
    if (const std::optional<std::vector<size_t>> begins = FindLocked(run_slabs)) {
      SlabLease lease;
      lease.pool_ = shared_from_this();
      for (size_t i = 0; i < run_slabs.size(); ++i) {
        std::fill_n(used_.begin() + static_cast<ptrdiff_t>((*begins)[i]), run_slabs[i], true);
        lease.runs_.push_back(all_.subspan((*begins)[i] * slab_bytes_, run_slabs[i] * slab_bytes_));
      }
      used_count_ += total;
      peak_ = std::max(peak_, used_count_);
      return lease;
    }
    switch (patience()) {
      case Patience::kGiveUp:
        return absl::CancelledError("stopped while waiting for memory");
      case Patience::kUrgent:
        lock.unlock();
        return AllocateOutside(run_slabs);
      case Patience::kWait:
        returned_.wait(lock);
    }
  }
}

void SlabPool::Take(SlabLease& lease) {
  for (const std::span<std::byte> run : lease.runs_) Poison(run);
  {
    const std::lock_guard lock(mutex_);
    for (const std::span<std::byte> run : lease.runs_) {
      if (lease.own_memory_) {
        overflow_bytes_ -= run.size();
        continue;
      }
      const size_t slabs = run.size() / slab_bytes_;
      const auto first = (run.data() - all_.data()) / static_cast<ptrdiff_t>(slab_bytes_);
      std::fill_n(used_.begin() + first, slabs, false);
      used_count_ -= slabs;
    }
  }
  if (lease.own_memory_) {
    for (const std::span<std::byte> run : lease.runs_) memory_.Free(run);
  }
  returned_.notify_all();
}

void SlabPool::Poke() {
  // A thread between its check and its wait must begin to wait first.
  { const std::lock_guard lock(mutex_); }
  returned_.notify_all();
}

uint64_t SlabPool::overflow_bytes() const {
  const std::lock_guard lock(mutex_);
  return overflow_bytes_;
}

size_t SlabPool::peak_slabs() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}

}  // namespace shardpack

// MemoryBudget: counts reserved bytes against a ceiling; Reservation: bytes that are given back
// with the object.
//
//   MemoryBudget budget(/*limit_bytes=*/1 << 30, progress.memory_bytes);
//   if (budget.Fits(bytes)) chunk.loaded = budget.Reserve(bytes);
//   chunk.loaded.Resize(0);               // or destroy the chunk
//
// Lifetime: the budget outlives its reservations; it borrows the gauge.
// Thread-safety: the budget from any thread, a reservation as any value. A caller that asks Fits
// and then reserves must keep others from doing so in between.
// Units: bytes.
#ifndef SHARDPACK_CONVERTERS_BUILDING_MEMORY_BUDGET_H_
#define SHARDPACK_CONVERTERS_BUILDING_MEMORY_BUDGET_H_

#include <atomic>
#include <cstdint>
#include <utility>

namespace shardpack {

class MemoryBudget {
 public:
  class Reservation;

  // `gauge` shows what is reserved.
  MemoryBudget(uint64_t limit_bytes, std::atomic<int64_t>& gauge)
      : limit_bytes_(limit_bytes), gauge_(gauge) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  uint64_t limit_bytes() const { return limit_bytes_; }
  // Whether so many more bytes stay below the ceiling.
  bool Fits(uint64_t bytes) const { return reserved_bytes_.load() + bytes <= limit_bytes_; }
  // Reserves them even if they do not fit: a single large sample must pass.
  Reservation Reserve(uint64_t bytes);

 private:
  void Change(uint64_t was_bytes, uint64_t now_bytes) {
    reserved_bytes_ += now_bytes - was_bytes;  // modulo 2^64
    gauge_ += static_cast<int64_t>(now_bytes) - static_cast<int64_t>(was_bytes);
  }

  const uint64_t limit_bytes_;
  std::atomic<uint64_t> reserved_bytes_{0};
  std::atomic<int64_t>& gauge_;
};

class MemoryBudget::Reservation {
 public:
  Reservation() = default;
  Reservation(Reservation&& other) noexcept { *this = std::move(other); }
  Reservation& operator=(Reservation&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Reservation() {
    if (budget_ != nullptr) budget_->Change(bytes_, 0);
  }

  uint64_t bytes() const { return bytes_; }
  // Of a reservation that came from Reserve, even of 0 bytes.
  void Resize(uint64_t bytes) { budget_->Change(std::exchange(bytes_, bytes), bytes); }

 private:
  friend class MemoryBudget;
  Reservation(MemoryBudget& budget, uint64_t bytes) : budget_(&budget), bytes_(bytes) {
    budget.Change(0, bytes);
  }

  MemoryBudget* budget_ = nullptr;
  uint64_t bytes_ = 0;
};

inline MemoryBudget::Reservation MemoryBudget::Reserve(uint64_t bytes) { return {*this, bytes}; }

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_BUILDING_MEMORY_BUDGET_H_

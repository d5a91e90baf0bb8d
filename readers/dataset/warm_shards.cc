#include "readers/dataset/warm_shards.h"

#include <sys/uio.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace shardpack {
namespace {

constexpr uint32_t kMaxHits = 1 << 20;
// A step width, since the page cache evicts in larger pieces.
constexpr uint64_t kWalkStepBytes = 64 << 10;
// Copies slower than this are not from memory, unless the thread had to wait for a core; checked
// occasionally.
constexpr uint64_t kSlowNsAtLeast = 200'000, kSlowNsPerByte = 5;
constexpr int64_t kLookEveryNs = 1'000'000'000;

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

std::shared_ptr<const MappedShard> WarmShard::Get() const {
  if (!is_mapped_.load(std::memory_order_acquire)) return nullptr;
  const std::lock_guard lock(mutex_);
  return mapping_;
}

bool WarmShard::AllCached(const File& file) const {
  std::byte probe{};
  const iovec one = {&probe, 1};
  for (uint64_t offset = 0; offset < bytes_; offset += kWalkStepBytes) {
    if (!file.ReadCachedAt(offset, std::span(&one, 1))) return false;
  }
  return bytes_ == 0 || file.ReadCachedAt(bytes_ - 1, std::span(&one, 1));
}

void WarmShard::RecordRead(const File& file, bool was_cached) const {
  if (!was_cached) {
    hits_.store(0, std::memory_order_relaxed);
    return;
  }
  const uint32_t wanted = wanted_hits_.load(std::memory_order_relaxed);
  if (hits_.fetch_add(1, std::memory_order_relaxed) + 1 < wanted) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || mapping_ != nullptr) return;
  hits_.store(0, std::memory_order_relaxed);
  wanted_hits_.store(std::min(2 * wanted, kMaxHits), std::memory_order_relaxed);
  if (!AllCached(file)) return;
  absl::StatusOr<MappedShard> mapped = MappedShard::Open(file, bytes_);
  if (!mapped.ok()) return;  // reads report what is wrong
  mapping_ = std::make_shared<const MappedShard>(*std::move(mapped));
  is_mapped_.store(true, std::memory_order_release);
}

bool WarmShard::IsSlow(uint64_t bytes, uint64_t ns) {
  return ns >= kSlowNsAtLeast + bytes * kSlowNsPerByte;
}

void WarmShard::LookAgain(const File& file) const {
  const int64_t now = NowNs();
  int64_t next = next_look_ns_.load(std::memory_order_relaxed);
  if (now < next || !next_look_ns_.compare_exchange_strong(next, now + kLookEveryNs)) return;
  if (AllCached(file)) return;
  const std::lock_guard lock(mutex_);
  is_mapped_.store(false, std::memory_order_release);
  mapping_ = nullptr;
  hits_.store(0, std::memory_order_relaxed);
}

}  // namespace shardpack

#include "readers/dataset/warm_shards.h"

#include <sys/uio.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace shardpack {
namespace {

constexpr uint32_t kFirstHits = 16, kMaxHits = 1 << 20;
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

WarmShards::WarmShards(std::span<const DatasetShard> shards) {
  for (const DatasetShard& shard : shards) {
    State& state = states_.emplace_back();
    state.bytes = shard.bytes;
    state.wanted_hits = kFirstHits;
  }
}

std::shared_ptr<const MappedShard> WarmShards::Get(uint32_t shard) const {
  State& state = states_[shard];
  if (!state.is_mapped.load(std::memory_order_acquire)) return nullptr;
  const std::lock_guard lock(state.mutex);
  return state.mapping;
}

bool WarmShards::AllCached(const File& file, uint64_t bytes) {
  std::byte probe{};
  const iovec one = {&probe, 1};
  for (uint64_t offset = 0; offset < bytes; offset += kWalkStepBytes) {
    if (!file.ReadCachedAt(offset, std::span(&one, 1))) return false;
  }
  return bytes == 0 || file.ReadCachedAt(bytes - 1, std::span(&one, 1));
}

void WarmShards::RecordRead(uint32_t shard, const File& file, bool was_cached) const {
  State& state = states_[shard];
  if (!was_cached) {
    state.hits.store(0, std::memory_order_relaxed);
    return;
  }
  const uint32_t wanted = state.wanted_hits.load(std::memory_order_relaxed);
  if (state.hits.fetch_add(1, std::memory_order_relaxed) + 1 < wanted) return;
  const std::unique_lock lock(state.mutex, std::try_to_lock);
  if (!lock.owns_lock() || state.mapping != nullptr) return;
  state.hits.store(0, std::memory_order_relaxed);
  state.wanted_hits.store(std::min(2 * wanted, kMaxHits), std::memory_order_relaxed);
  if (!AllCached(file, state.bytes)) return;
  absl::StatusOr<MappedShard> mapped = MappedShard::Open(file, state.bytes);
  if (!mapped.ok()) return;  // reads report what is wrong
  state.mapping = std::make_shared<const MappedShard>(*std::move(mapped));
  state.is_mapped.store(true, std::memory_order_release);
}

bool WarmShards::IsSlow(uint64_t bytes, uint64_t ns) {
  return ns >= kSlowNsAtLeast + bytes * kSlowNsPerByte;
}

void WarmShards::LookAgain(uint32_t shard, const File& file) const {
  State& state = states_[shard];
  const int64_t now = NowNs();
  int64_t next = state.next_look_ns.load(std::memory_order_relaxed);
  if (now < next || !state.next_look_ns.compare_exchange_strong(next, now + kLookEveryNs)) return;
  if (AllCached(file, state.bytes)) return;
  const std::lock_guard lock(state.mutex);
  state.is_mapped.store(false, std::memory_order_release);
  state.mapping = nullptr;
  state.hits.store(0, std::memory_order_relaxed);
}

}  // namespace shardpack

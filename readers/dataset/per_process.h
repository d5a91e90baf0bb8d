// PerProcess: an object with locks that a forked child gets new copies of: at the fork a thread of
// the parent may hold them, or may be changing what they guard, and in the child no thread is left
// to release them.
//
//   PerProcess<Cache> cache;
//   const std::lock_guard lock(cache.Get().mutex);
//
// Lifetime: owns the object; the parent's copies stay in the child's memory.
// Thread-safety: any thread; the object as it is.
#ifndef SHARDPACK_READERS_DATASET_PER_PROCESS_H_
#define SHARDPACK_READERS_DATASET_PER_PROCESS_H_

#include <atomic>
#include <cstdint>
#include <memory>

namespace shardpack {

// How often this process and those before it have forked, to tell them apart. Counted from the
// first call on.
uint64_t ForkGeneration();

template <typename T>
class PerProcess {
 public:
  PerProcess() { (void)ForkGeneration(); }
  PerProcess(const PerProcess&) = delete;
  PerProcess& operator=(const PerProcess&) = delete;
  ~PerProcess() {
    std::unique_ptr<Entry> last(entry_.load());
    // In pieces, perhaps.
    if (last != nullptr && last->generation != ForkGeneration()) (void)last.release();
  }

  // Made from `parts` when a process first asks.
  template <typename... Parts>
  T& Get(const Parts&... parts) const {
    Entry* entry = entry_.load(std::memory_order_acquire);
    if (entry != nullptr && entry->generation == ForkGeneration()) return entry->object;
    auto made = std::make_unique<Entry>(parts...);
    // If not, another thread of this process was faster.
    if (entry_.compare_exchange_strong(entry, made.get())) return made.release()->object;
    return entry->object;
  }

 private:
  struct Entry {
    template <typename... Parts>
    explicit Entry(const Parts&... parts) : object(parts...) {}
    const uint64_t generation = ForkGeneration();
    T object;
  };

  mutable std::atomic<Entry*> entry_{nullptr};
};

}  // namespace shardpack

#endif  // SHARDPACK_READERS_DATASET_PER_PROCESS_H_

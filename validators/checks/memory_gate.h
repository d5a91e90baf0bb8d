// MemoryGate: admits as many concurrent decodes as their memory allows.
//
//   MemoryGate gate(uint64_t{512} << 20);
//   gate.Enter(bytes);   // waits until there is room
//   ...
//   gate.Leave(bytes);
//
// A decode that needs more than the limit waits until it is alone.
//
// Lifetime: must outlive its users.
// Thread-safety: any thread. A thread inside must not wait for anything that needs the gate.
// Units: bytes.
#ifndef SHARDPACK_VALIDATORS_CHECKS_MEMORY_GATE_H_
#define SHARDPACK_VALIDATORS_CHECKS_MEMORY_GATE_H_

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "images/codecs/inspect.h"

namespace shardpack {

class MemoryGate : public ImageInspector::Gate {
 public:
  explicit MemoryGate(uint64_t bytes) : capacity_(bytes), free_(bytes) {}

  void Enter(uint64_t bytes) override {
    const uint64_t wanted = std::min(bytes, capacity_);
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] { return free_ >= wanted; });
    free_ -= wanted;
  }
  void Leave(uint64_t bytes) override {
    {
      const std::lock_guard lock(mutex_);
      free_ += std::min(bytes, capacity_);
    }
    room_.notify_all();
  }

 private:
  const uint64_t capacity_;
  std::mutex mutex_;
  std::condition_variable room_;
  uint64_t free_;
};

// Separate gates for files and pixels: a holder of a file may wait for pixels, never the reverse.
struct MemoryGates {
  MemoryGate files{uint64_t{512} << 20};
  MemoryGate pixels{uint64_t{1} << 30};
};

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_CHECKS_MEMORY_GATE_H_

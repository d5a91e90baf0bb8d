// What the sources of FakeDevice share.
#ifndef SHARDPACK_CUDA_TESTING_FAKE_INTERNAL_H_
#define SHARDPACK_CUDA_TESTING_FAKE_INTERNAL_H_

#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include "cuda/testing/fake_device.h"

namespace shardpack {

struct FakeDevice::Block {
  std::unique_ptr<std::byte[]> bytes;  // guards included
  size_t size = 0;
};

struct FakeDevice::FakeEvent {
  uint64_t recorded = 0, done = 0;  // generations
  bool captured = false;            // recorded last on a stream that captures a graph
};

struct FakeDevice::FakeStream {
  struct Operation {
    std::function<void()> run;      // without FakeDevice::mutex_; may be empty
    std::function<bool()> may_run;  // under it; may be empty
    std::function<void()> after;    // under it; may be empty
  };
  std::deque<Operation> queue;  // under FakeDevice::mutex_
  bool busy = false, ends = false, capturing = false, captured_wrongly = false;
  FakeDevice::Graph captured;
  StreamPriority priority = StreamPriority::kNormal;
  uint64_t pushed = 0, finished = 0;  // operations
  std::mt19937_64 random;
  std::thread thread;

  bool idle() const { return queue.empty() && !busy; }
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_TESTING_FAKE_INTERNAL_H_

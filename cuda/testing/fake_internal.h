// What the sources of FakeApi share.
#ifndef SHARDPACK_CUDA_TESTING_FAKE_INTERNAL_H_
#define SHARDPACK_CUDA_TESTING_FAKE_INTERNAL_H_

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include "cuda/testing/fake_api.h"

namespace shardpack {

struct FakeApi::Block {
  std::unique_ptr<std::byte[]> bytes;  // guards included
  size_t size = 0;
};

struct FakeApi::FakeEvent {
  uint64_t recorded = 0, done = 0;  // generations
  std::chrono::steady_clock::time_point when;
};

struct FakeApi::FakeStream {
  struct Operation {
    std::function<void()> run;      // without FakeApi::mutex_; may be empty
    std::function<bool()> may_run;  // under it; may be empty
    std::function<void()> after;    // under it; may be empty
  };
  std::deque<Operation> queue;  // under FakeApi::mutex_
  bool busy = false, ends = false;
  std::mt19937_64 random;
  std::thread thread;

  bool idle() const { return queue.empty() && !busy; }
};

DeviceStatus FakeError(int code);

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_TESTING_FAKE_INTERNAL_H_

#include "readers/dataset/per_process.h"

#include <pthread.h>

namespace shardpack {
namespace {

std::atomic<uint64_t> generation{0};
std::atomic<bool> counting{false};

void CountFork() { generation.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

uint64_t ForkGeneration() {
  // No lock, which could be one of those that a child waits for.
  if (!counting.load(std::memory_order_relaxed) && !counting.exchange(true))
    (void)::pthread_atfork(nullptr, nullptr, CountFork);
  return generation.load(std::memory_order_relaxed);
}

}  // namespace shardpack

#include "converters/building/task_gate.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace shardpack {
namespace {

TEST(TaskGateTest, LetsInUntilItIsShut) {
  TaskGate gate;
  EXPECT_TRUE(gate.Enter());
  EXPECT_TRUE(gate.Enter());
  gate.Leave();
  gate.Leave();
  gate.ShutAndWait();
  EXPECT_FALSE(gate.Enter());
}

TEST(TaskGateTest, NoTaskIsInsideOnceItIsShut) {
  TaskGate gate;
  auto used = std::make_unique<std::atomic<int>>(0);
  std::atomic<bool> shut{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (gate.Enter()) {
        EXPECT_FALSE(shut.load());
        ++*used;
        gate.Leave();
      }
    });
  }
  while (used->load() < 100) std::this_thread::yield();
  gate.ShutAndWait();
  shut = true;
  used.reset();  // which a sanitizer sees if a task is still inside
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace shardpack

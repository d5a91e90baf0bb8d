#include "readers/dataset/per_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace shardpack {
namespace {

struct Guarded {
  std::mutex mutex;
  int number = 0;
};

// The exit status of a child that does this.
template <typename Work>
int InChild(const Work& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    ::_exit(work());
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

TEST(PerProcess, IsOneForAllThreads) {
  PerProcess<Guarded> guarded;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 1000; ++k) {
        Guarded& own = guarded.Get();
        const std::lock_guard lock(own.mutex);
        ++own.number;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(guarded.Get().number, 4000);
}

TEST(PerProcess, AChildDoesNotWaitForThoseOfTheParent) {
  PerProcess<Guarded> guarded;
  const std::lock_guard held(guarded.Get().mutex);
  guarded.Get().number = 7;
  EXPECT_EQ(InChild([&] {
              Guarded& own = guarded.Get();
              const std::lock_guard lock(own.mutex);
              if (own.number != 0 || &own != &guarded.Get()) return 1;
              // And so on in its own children.
              own.number = 8;
              return InChild([&] {
                Guarded& last = guarded.Get();
                const std::lock_guard lock_of_last(last.mutex);
                return last.number;
              });
            }),
            0);
  EXPECT_EQ(guarded.Get().number, 7);
}

TEST(PerProcess, AChildMayDestroyIt) {
  auto guarded = std::make_unique<PerProcess<Guarded>>();
  guarded->Get().mutex.lock();
  EXPECT_EQ(InChild([&] {
              guarded = nullptr;
              return 0;
            }),
            0);
  guarded->Get().mutex.unlock();
}

}  // namespace
}  // namespace shardpack

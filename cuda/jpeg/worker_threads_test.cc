#include "cuda/jpeg/worker_threads.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"

namespace shardpack {
namespace {

// The caller then does all of it, until they can be had. First: threads that have ended leave their
// stacks to later ones.
TEST(WorkerThreads, NoneCanBeStarted) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "sanitizers end the process when there is no memory for a thread";
#endif
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  WorkerThreads threads([] { return absl::OkStatus(); });
  std::atomic<size_t> next{0}, calls{0};
  const WorkerThreads::Work work = [&](size_t) {
    ++calls;
    while (next.fetch_add(1) < 100) {
    }
    return absl::OkStatus();
  };
  rlimit none = before;
  none.rlim_cur = 1;  // no memory for a stack
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &none), 0);
  const absl::Status end = threads.Run(4, work);
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_TRUE(end.ok()) << end;
  EXPECT_EQ(calls.load(), 1u);
  EXPECT_GE(next.load(), 100u);
  EXPECT_TRUE(threads.Run(4, work).ok());
  EXPECT_EQ(calls.load(), 5u);
}

TEST(WorkerThreads, AnExceptionIsAnErrorOnceAllHaveEnded) {
  for (const size_t failing : {0u, 2u}) {
    WorkerThreads threads([] { return absl::OkStatus(); });
    std::atomic<int> ended{0};
    const absl::Status end = threads.Run(3, [&](size_t thread) -> absl::Status {
      if (thread == failing) throw std::bad_alloc();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ++ended;
      return absl::OkStatus();
    });
    EXPECT_TRUE(absl::IsResourceExhausted(end)) << end;
    EXPECT_EQ(ended.load(), 2);
    EXPECT_TRUE(threads.Run(3, [](size_t) { return absl::OkStatus(); }).ok());
  }
}

// Each call has a number and a thread of its own, the same in each piece of work.
TEST(WorkerThreads, StayTheSame) {
  std::atomic<int> entered{0};
  std::vector<std::thread::id> first(5);
  {
    WorkerThreads threads([&] {
      ++entered;
      return absl::OkStatus();
    });
    EXPECT_TRUE(threads.Run(1, [](size_t) { return absl::OkStatus(); }).ok());
    EXPECT_EQ(entered.load(), 0);
    for (int round = 0; round < 200; ++round) {
      const size_t count = round % 2 == 0 ? 5 : 3;
      std::vector<std::thread::id> ids(count);
      ASSERT_TRUE(threads
                      .Run(count,
                           [&](size_t thread) {
                             ids[thread] = std::this_thread::get_id();
                             return absl::OkStatus();
                           })
                      .ok());
      if (round == 0) first = ids;
      EXPECT_EQ(ids, std::vector(first.begin(), first.begin() + static_cast<ptrdiff_t>(count)));
    }
    EXPECT_EQ(first[0], std::this_thread::get_id());
    EXPECT_EQ(std::set(first.begin(), first.end()).size(), 5u);
  }
  EXPECT_EQ(entered.load(), 4);
}

TEST(WorkerThreads, TheFirstErrorByNumber) {
  WorkerThreads threads([] { return absl::OkStatus(); });
  for (size_t failing = 0; failing < 3; ++failing) {
    std::atomic<int> calls{0};
    const absl::Status end = threads.Run(3, [&](size_t thread) {
      ++calls;
      return thread < failing ? absl::OkStatus() : absl::InternalError(std::to_string(thread));
    });
    EXPECT_EQ(end.message(), std::to_string(failing));
    EXPECT_EQ(calls.load(), 3);
  }
}

// One that fails to enter does no work, and tries again.
TEST(WorkerThreads, EnterOnceItSucceeds) {
  std::atomic<int> tries{0};
  WorkerThreads threads(
      [&] { return ++tries < 3 ? absl::UnavailableError("not yet") : absl::OkStatus(); });
  for (int round = 1; round <= 5; ++round) {
    std::atomic<int> calls{0};
    const absl::Status end = threads.Run(2, [&](size_t) {
      ++calls;
      return absl::OkStatus();
    });
    EXPECT_EQ(absl::IsUnavailable(end), round < 3);
    EXPECT_EQ(calls.load(), round < 3 ? 1 : 2);
  }
  EXPECT_EQ(tries.load(), 3);
}

}  // namespace
}  // namespace shardpack

#include "converters/threads/io_pool.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace shardpack {
namespace {

TEST(IoPoolTest, ForEachRunsEachTaskOnceAndWaits) {
  IoPool pool(8);
  for (const size_t count : {0, 1, 7, 1000}) {
    std::vector<std::atomic<int>> runs(count);
    pool.ForEach(count, [&](size_t i) { ++runs[i]; });
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(runs[i].load(), 1);
  }
}

TEST(IoPoolTest, TheDestructorRunsWhatWasSubmitted) {
  std::atomic<int> ran{0};
  {
    IoPool pool(2);
    for (int i = 0; i < 100; ++i) pool.Submit([&] { ++ran; });
  }
  EXPECT_EQ(ran.load(), 100);
}

TEST(IoPoolTest, TasksOverlap) {
  IoPool pool(4);
  std::mutex mutex;
  std::condition_variable all_here;
  int here = 0;
  // Each waits for all: with fewer than four threads at once this would hang.
  pool.ForEach(4, [&](size_t) {
    std::unique_lock lock(mutex);
    if (++here == 4) all_here.notify_all();
    all_here.wait(lock, [&] { return here == 4; });
  });
  EXPECT_EQ(here, 4);
}

TEST(IoPoolTest, TasksThatWaitLetOthersRun) {
  constexpr int kThreads = 24;
  std::mutex mutex;
  std::condition_variable all_here;
  int here = 0;
  IoPool pool(kThreads);
  EXPECT_EQ(pool.threads(), kThreads);
  for (int i = 0; i < kThreads; ++i) {
    pool.Submit([&] {
      std::unique_lock lock(mutex);
      if (++here == kThreads) all_here.notify_all();
      all_here.wait(lock, [&] { return here == kThreads; });
    });
  }
  std::unique_lock lock(mutex);
  all_here.wait(lock, [&] { return here == kThreads; });
}

TEST(IoPoolTest, NeverRunsMoreThanItsThreads) {
  constexpr int kThreads = 3;
  std::atomic<int> running{0}, most{0};
  {
    IoPool pool(kThreads);
    for (int i = 0; i < 200; ++i) {
      pool.Submit([&] {
        const int now = ++running;
        for (int known = most; known < now && !most.compare_exchange_weak(known, now);) {
        }
        std::this_thread::yield();
        --running;
      });
      EXPECT_LE(pool.limit(), kThreads);
    }
  }
  EXPECT_LE(most.load(), kThreads);
}

TEST(IoPoolTest, OnlyWaitsOfReadingLetMoreTasksRun) {
  IoPool pool(1000);
  const int least = pool.limit();
  const auto wait = [] { std::this_thread::sleep_for(std::chrono::microseconds(1)); };
  constexpr size_t kTasks = 50;
  for (size_t i = 0; i < kTasks; ++i) pool.ForEach(1, [&](size_t) { wait(); });
  EXPECT_GT(pool.limit(), least);
  for (size_t i = 0; i < 2 * kTasks; ++i) {
    pool.ForEach(1, [&](size_t) {
      pool.EndReading();
      wait();
    });
  }
  // What has only just ended may not count yet.
  EXPECT_LE(pool.limit(), least + 1);
}

TEST(IoPoolTest, ForEachMayBeCalledFromManyThreads) {
  IoPool pool(3);
  std::atomic<int> total{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] { pool.ForEach(50, [&](size_t) { ++total; }); });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total.load(), 200);
}

TEST(IoPoolTest, ForEachThrowsWhatATaskThrows) {
  IoPool pool(4);
  std::atomic<int> running{0};
  const auto task = [&](size_t i) {
    ++running;
    const bool fails = i == 100;
    --running;
    if (fails) throw std::bad_alloc();
  };
  EXPECT_THROW(pool.ForEach(1000, task), std::bad_alloc);
  EXPECT_EQ(running.load(), 0) << "it did not wait for the others";
  std::atomic<int> ran{0};
  pool.ForEach(10, [&](size_t) { ++ran; });
  EXPECT_EQ(ran.load(), 10) << "the pool is of no more use";
}

}  // namespace
}  // namespace shardpack

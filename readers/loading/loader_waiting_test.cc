// Loaders whose reads are slow, short, hang or throw: waiting, time limits, stopping, forks.
#include <errno.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "formats/io/file.h"
#include "formats/testing/datasets/test_dataset.h"
#include "formats/testing/fault_injection.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "readers/loading/loader_test_fixture.h"

namespace shardpack::testing {
namespace {

// Data that is not in the page cache, or cannot be read at once, goes to the I/O threads.
std::atomic<int> refusals{0};
ssize_t ColdPreadv2(int fd, const iovec* parts, int count, off_t offset, int flags) {
  if ((flags & RWF_NOWAIT) != 0) {
    refusals.fetch_add(1);
    errno = EAGAIN;
    return -1;
  }
  const ssize_t got = ::preadv2(fd, parts, count, offset, flags);
  return got > 3 && offset % 3 == 0 ? got - 3 : got;  // occasionally short
}

// As when memory runs out in a thread of the loader.
ssize_t ThrowingPreadv2(int, const iovec*, int, off_t, int) { throw std::bad_alloc(); }

TEST_F(LoaderTest, AnExceptionInAThreadIsAnErrorOfNext) {
  SyscallsForTesting().preadv2 = ThrowingPreadv2;
  Loader loader = Open(MakeOrder(10), {.map_warm_shards = false, .threads = 2});
  for (int again = 0; again < 2; ++again)
    EXPECT_TRUE(absl::IsResourceExhausted(loader.Next().status()));
}

TEST_F(LoaderTest, ColdReadsAndShortOnesAreTheSameBatches) {
  SyscallsForTesting().preadv2 = ColdPreadv2;
  const Order order = MakeOrder(10);
  Loader loader = Open(order, {.io_threads = 7, .epochs = 1});
  for (uint64_t step = 0; step < order.steps(); ++step) ExpectRight(**loader.Next(), order);
  EXPECT_GT(refusals.load(), 0);
  const LoaderStats stats = loader.stats();
  EXPECT_EQ(stats.disk_read.items, 100u);
  EXPECT_EQ(stats.read.items, 0u);
  EXPECT_GT(stats.io_threads, 0);
  EXPECT_LE(stats.io_threads, 7);
}

// Reads that wait for the disk end when allowed to.
std::mutex hang_mutex;
std::condition_variable hang_ended;
bool reads_hang = false;
ssize_t HangingPreadv2(int fd, const iovec* parts, int count, off_t offset, int flags) {
  if ((flags & RWF_NOWAIT) != 0) {
    errno = EAGAIN;
    return -1;
  }
  std::unique_lock lock(hang_mutex);
  hang_ended.wait(lock, [] { return !reads_hang; });
  return ::preadv2(fd, parts, count, offset, flags);
}

TEST_F(LoaderTest, AWaitThatIsInterruptedLosesNoBatch) {
  SyscallsForTesting().preadv2 = HangingPreadv2;
  reads_hang = true;
  const Order order = MakeOrder(10);
  Loader loader = Open(order, {.io_threads = 3, .epochs = 1});
  int asked = 0;
  EXPECT_EQ(loader.Next([&] { return ++asked == 2; }).status().code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(asked, 2);
  {
    const std::lock_guard lock(hang_mutex);
    reads_hang = false;
  }
  hang_ended.notify_all();
  for (uint64_t step = 0; step < order.steps(); ++step) {
    auto batch = loader.Next([] { return false; });
    ASSERT_TRUE(batch.ok()) << batch.status();
    EXPECT_EQ((*batch)->step(), step);
    ExpectRight(**batch, order);
  }
  EXPECT_FALSE(loader.Next()->has_value());
}

TEST_F(LoaderTest, ATimeLimitLosesNoBatch) {
  SyscallsForTesting().preadv2 = HangingPreadv2;
  reads_hang = true;
  const Order order = MakeOrder(10);
  Loader loader = Open(order, {.io_threads = 3, .epochs = 1});
  for (const int most : {0, 1, 0, 5}) {
    const auto none = loader.NextWithin(std::chrono::milliseconds(most));
    EXPECT_TRUE(absl::IsDeadlineExceeded(none.status()));
  }
  {
    const std::lock_guard lock(hang_mutex);
    reads_hang = false;
  }
  hang_ended.notify_all();
  for (uint64_t step = 0; step < order.steps();) {
    auto batch = loader.NextWithin(std::chrono::milliseconds(1));
    if (absl::IsDeadlineExceeded(batch.status())) continue;
    ASSERT_TRUE(batch.ok()) << batch.status();
    EXPECT_EQ((*batch)->step(), step++);
    ExpectRight(**batch, order);
  }
  EXPECT_FALSE(loader.NextWithin(std::chrono::milliseconds(0))->has_value());
}

TEST_F(LoaderTest, StopsAtAnyTimeFromAnyThread) {
  const Order order = MakeOrder(5);
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    Loader loader = Open(order, {.threads = 1 + round % 3,
                                 .prefetch_batches = 1 + static_cast<uint32_t>(round % 4)});
    std::thread stopper([&, delay = random() % 300] {
      std::this_thread::sleep_for(std::chrono::microseconds(delay));
      loader.Stop();
    });
    absl::Status status;
    std::vector<HostBatch> kept;
    while (status.ok()) {
      auto batch = loader.Next();
      status = batch.status();
      if (status.ok() && batch->has_value() && round % 2 == 0) {
        kept.push_back(**std::move(batch));
        if (kept.size() > 20) kept.clear();
      }
    }
    EXPECT_TRUE(absl::IsCancelled(status)) << status;
    stopper.join();
  }
  for (int round = 0; round < 20; ++round) Open(order);  // destroyed before the first batch
  EXPECT_EQ(memory_.allocated_bytes(), 0u);
}

TEST_F(LoaderTest, AForkedChildIsToldSo) {
  Loader loader = Open(MakeOrder(5));
  ASSERT_TRUE(loader.Next()->has_value());
  const pid_t child = ::fork();
  if (child == 0) {
    bool told = false;
    {
      // Its destructor must not wait for threads that do not exist here.
      Loader inherited = std::move(loader);
      told = absl::IsFailedPrecondition(inherited.Next().status()) &&
             absl::IsFailedPrecondition(inherited.CursorOf({}).status()) &&
             absl::IsFailedPrecondition(inherited.SetAugmentation({}));
      inherited.Stop();
      told = told && inherited.stats().batches == 0 && inherited.TakeBadSamples().empty();
    }
    ::_exit(told ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace shardpack::testing

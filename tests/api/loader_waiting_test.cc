// Loaders of the C interface whose reads hang: waits that end, closing, stopping, releasing.
#include <sys/uio.h>

#include <cerrno>
#include <condition_variable>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <thread>
#include <vector>

#include "api/any_loader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/api/fixture.h"

namespace shardpack::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

class ApiWaitingTest : public ApiTest {};

// Reads that may wait hang until the gate is opened; nothing is in the page cache.
class Gate {
 public:
  static ssize_t Preadv2(int fd, const iovec* parts, int count, off_t offset, int flags) {
    if ((flags & RWF_NOWAIT) != 0) {
      errno = EAGAIN;
      return -1;
    }
    std::unique_lock lock(mutex);
    ++reached;
    changed.notify_all();
    changed.wait(lock, [] { return open; });
    lock.unlock();
    return ::preadv2(fd, parts, count, offset, flags);
  }
  static void Shut() {
    SyscallsForTesting().preadv2 = Preadv2;
    const std::lock_guard lock(mutex);
    open = false;
    reached = 0;
  }
  static void WaitUntilReached() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [] { return reached > 0; });
  }
  static void Open() {
    const std::lock_guard lock(mutex);
    open = true;
    changed.notify_all();
  }

  inline static std::mutex mutex;
  inline static std::condition_variable changed;
  inline static bool open = false;
  inline static int reached = 0;
};

TEST_F(ApiWaitingTest, AWaitThatEndsLosesNothing) {
  Make();
  Gate::Shut();
  const LoaderHandle loader = OpenLoader();
  Gate::WaitUntilReached();
  shardpack_batch* batch = nullptr;
  for (const int64_t wait_ms : {0, 0, 1, 20, 0}) {
    ASSERT_EQ(shardpack_loader_next(loader.get(), wait_ms, &batch, Error()), SHARDPACK_WAIT);
    EXPECT_EQ(batch, nullptr);
    EXPECT_EQ(error_, nullptr);
  }
  Gate::Open();
  uint64_t step = 0;
  for (;;) {
    const shardpack_code code = shardpack_loader_next(loader.get(), 0, &batch, Error());
    if (code == SHARDPACK_WAIT) continue;
    if (code == SHARDPACK_END) break;
    ASSERT_EQ(code, SHARDPACK_OK) << Why();
    const BatchHandle owned(batch);
    EXPECT_EQ(View(owned).step, step++);
  }
  EXPECT_EQ(step, 4u);
}

// Asking without waiting gets the memory that a waiting consumer gets.
TEST_F(ApiWaitingTest, AConsumerThatAsksAndKeepsBatchesIsServed) {
  Make(2, 400);
  shardpack_loader_options options = LoaderOptions();
  options.memory_bytes = 1;  // as little as possible
  options.prefetch_batches = 1;
  options.epochs = 1;
  const LoaderHandle loader = OpenLoader(options);
  std::vector<BatchHandle> kept;
  for (;;) {
    shardpack_batch* batch = nullptr;
    const shardpack_code code = shardpack_loader_next(loader.get(), 0, &batch, Error());
    if (code == SHARDPACK_WAIT) continue;
    if (code != SHARDPACK_OK) break;
    kept.emplace_back(batch);
  }
  EXPECT_EQ(kept.size(), 100u) << Why();
}

// Of this process.
size_t Threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

TEST_F(ApiWaitingTest, AHungReadKeepsCloseWaitingAndNotRelease) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP()
      << "the test takes its hooks away while the thread that ends the loader may use them";
#endif
  Make();
  Gate::Shut();
  LoaderHandle loader = OpenLoader();
  Gate::WaitUntilReached();
  EXPECT_EQ(shardpack_loader_close(loader.get(), 0, Error()), SHARDPACK_WAIT);
  shardpack_batch* batch = nullptr;
  EXPECT_EQ(shardpack_loader_next(loader.get(), -1, &batch, Error()), SHARDPACK_STATE);
  EXPECT_THAT(Why(), HasSubstr("closed"));
  Gate::Open();
  EXPECT_EQ(shardpack_loader_close(loader.get(), -1, Error()), SHARDPACK_OK) << Why();
  EXPECT_EQ(shardpack_loader_close(loader.get(), 0, Error()), SHARDPACK_OK);
  const size_t threads = Threads();
  Gate::Shut();
  loader = OpenLoader();
  Gate::WaitUntilReached();
  loader.reset();  // returns though the read hangs
  EXPECT_GT(Threads(), threads);
  Gate::Open();
  while (Threads() > threads) std::this_thread::yield();
}

// The caller never waits for an end, however early the other thread runs.
TEST(EndInBackground, IsNeverOnTheCallersThread) {
  const auto here = std::this_thread::get_id();
  for (int i = 0; i < 500; ++i) {
    auto object = std::shared_ptr<int>(new int(i), [here](const int* number) {
      EXPECT_NE(std::this_thread::get_id(), here);
      delete number;
    });
    auto ended = std::make_shared<api::EndedFlag>();
    api::EndInBackground(std::move(object), ended);
    ASSERT_TRUE(ended->Wait(-1));
  }
}

TEST(EndingInBackground, WhicheverReferenceIsTheLast) {
  const auto here = std::this_thread::get_id();
  bool gone = false;
  auto object = std::shared_ptr<int>(new int(7), [&](const int* number) {
    EXPECT_NE(std::this_thread::get_id(), here);
    gone = true;
    delete number;
  });
  const auto ended = std::make_shared<api::EndedFlag>();
  std::shared_ptr<int> first = api::EndingInBackground(std::move(object), ended);
  std::shared_ptr<int> second = first;
  first = nullptr;
  EXPECT_FALSE(ended->Wait(0));
  EXPECT_EQ(*second, 7);
  second = nullptr;
  EXPECT_TRUE(ended->Wait(-1));
  EXPECT_TRUE(gone);  // before the flag was set
}

// A call that another thread is in may be the last one to use the loader; it does not wait either.
TEST_F(ApiWaitingTest, ClosingUnderAWaitingNextBlocksNeither) {
  Make();
  Gate::Shut();
  const LoaderHandle loader = OpenLoader();
  Gate::WaitUntilReached();
  shardpack_code code = SHARDPACK_OK;
  std::thread waiting([&] {
    shardpack_batch* batch = nullptr;
    code = shardpack_loader_next(loader.get(), -1, &batch, nullptr);
  });
  EXPECT_EQ(shardpack_loader_close(loader.get(), 0, Error()), SHARDPACK_WAIT);
  waiting.join();  // while the read hangs
  EXPECT_THAT(code, AnyOf(SHARDPACK_CANCELLED, SHARDPACK_STATE));
  Gate::Open();
  EXPECT_EQ(shardpack_loader_close(loader.get(), -1, Error()), SHARDPACK_OK);
}

TEST_F(ApiWaitingTest, StopWakesAWaitingNext) {
  Make();
  Gate::Shut();
  const LoaderHandle loader = OpenLoader();
  Gate::WaitUntilReached();
  std::thread stopper([&] { shardpack_loader_stop(loader.get()); });
  shardpack_batch* batch = nullptr;
  EXPECT_EQ(shardpack_loader_next(loader.get(), -1, &batch, Error()), SHARDPACK_CANCELLED);
  stopper.join();
  EXPECT_EQ(shardpack_loader_next(loader.get(), 0, &batch, Error()), SHARDPACK_CANCELLED);
  Gate::Open();
  EXPECT_EQ(shardpack_loader_close(loader.get(), -1, Error()), SHARDPACK_OK);
}

}  // namespace
}  // namespace shardpack::testing

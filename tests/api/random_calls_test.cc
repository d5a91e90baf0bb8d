// Calls of the C interface at random: any order of calls and releases, on one thread, on two that
// share handles, and in forked children while loaders run. $SHARDPACK_RANDOM_CALLS: more calls than
// the test makes by itself.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/api/fixture.h"
#include "tests/api/random_caller.h"

namespace shardpack::testing {
namespace {

// Of one seed.
int Calls() {
  const char* const more = std::getenv("SHARDPACK_RANDOM_CALLS");
  return more == nullptr ? 400 : std::atoi(more);
}

class ApiRandomCallsTest : public ApiTest {
 protected:
  ApiRandomCallsTest() : disk_(WriteDamagedDataset(folder_)) { samples_ = disk_.samples; }

  const DatasetOnDisk disk_;
};

TEST_F(ApiRandomCallsTest, OnOneThread) {
  for (uint64_t seed = 1; seed <= 3 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomCaller caller(disk_, Choices(seed));
    for (int i = 0; i < Calls() && !HasFailure(); ++i) caller.Call();
    caller.ReleaseAll();
  }
}

TEST_F(ApiRandomCallsTest, OnTwoThreads) {
  for (uint64_t seed = 1; seed <= 2 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SharedHandles shared;
    RandomCaller first(disk_, Choices(2 * seed), &shared);
    RandomCaller second(disk_, Choices(2 * seed + 1), &shared);
    first.OpenShared(2);
    std::vector<std::thread> threads;
    for (RandomCaller* const caller : {&first, &second}) {
      threads.emplace_back([caller] {
        for (int i = 0; i < Calls() && !HasFailure(); ++i) caller->Call();
        caller->ReleaseAll();
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const HeldLoader& loader : shared.loaders) shardpack_loader_release(loader.handle);
    for (const HeldBatch& batch : shared.batches) shardpack_batch_release(batch.handle);
    for (const HeldDataset& dataset : shared.datasets) shardpack_dataset_release(dataset.handle);
  }
}

#ifndef __SANITIZE_THREAD__  // which allows no threads in the child of a process that had some
// A child has what the parent had, but for its threads; whatever these were doing.
TEST_F(ApiRandomCallsTest, InForkedChildren) {
  RandomCaller caller(disk_, Choices(9));
  for (int child_number = 0; child_number < 10 && !HasFailure(); ++child_number) {
    for (int i = 0; i < Calls() / 10; ++i) caller.Call();
    std::fflush(stdout);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::alarm(120);  // it hangs: a lock that a thread of the parent held
      caller.SetForked();
      for (int i = 0; i < Calls() / 8 && !HasFailure(); ++i) caller.Call();
      caller.ReleaseAll();
      std::fflush(stdout);
      ::_exit(HasFailure() ? 1 : 0);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "child " << child_number << ", signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 0) << "child " << child_number;
  }
  caller.ReleaseAll();
}
#endif

// Threads of the parent hold locks of the dataset at any time.
TEST_F(ApiRandomCallsTest, AChildReadsWhileLoadersRead) {
#ifdef __SANITIZE_ADDRESS__
  // clang 14's allocator does not take its locks over a fork: a child waits for ever for one that
  // another thread held.
  GTEST_SKIP() << "a child cannot allocate under this sanitizer";
#endif
  const DatasetHandle dataset = Open();
  const OrderHandle order = MakeOrder();
  shardpack_loader_options options = LoaderOptions();
  options.bad_samples = SHARDPACK_BAD_SUBSTITUTE;
  options.max_bad_samples = UINT64_MAX;
  shardpack_loader* opened = nullptr;
  ASSERT_EQ(shardpack_loader_open(dataset.get(), order.get(), &options, &opened, Error()),
            SHARDPACK_OK);
  const LoaderHandle loader(opened);
  std::thread consumer([&] {
    shardpack_batch* batch = nullptr;
    while (shardpack_loader_next(loader.get(), -1, &batch, nullptr) <= SHARDPACK_END)
      shardpack_batch_release(batch);
  });
  for (uint64_t number = 0; number < 150 && !HasFailure(); ++number) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);
      const uint64_t ids[] = {number % 5, 6 + number % 14};
      shardpack_batch* batch = nullptr;
      const shardpack_code code =
          shardpack_dataset_read(dataset.get(), ids, 2, nullptr, 0, &batch, nullptr);
      shardpack_batch_release(batch);
      ::_exit(code);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "child " << number;
  }
  shardpack_loader_stop(loader.get());
  consumer.join();
}

}  // namespace
}  // namespace shardpack::testing

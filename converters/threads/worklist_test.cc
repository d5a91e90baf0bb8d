#include "converters/threads/worklist.h"

#include <atomic>
#include <functional>
#include <new>

#include "gtest/gtest.h"

namespace shardpack {
namespace {

TEST(WorklistTest, RunsTasksOfTasksOnceAndWaits) {
  IoPool pool(4);
  Worklist work;
  std::atomic<int> visits{0};
  const std::function<void(int)> visit = [&](int depth) {
    ++visits;
    for (int child = 0; depth > 0 && child < 3; ++child)
      work.Push([&visit, depth] { visit(depth - 1); });
  };
  work.Push([&] { visit(4); });
  work.Run(pool);
  EXPECT_EQ(visits.load(), 1 + 3 + 9 + 27 + 81);
}

TEST(WorklistTest, StopDropsWhatHasNotBegun) {
  IoPool pool(1);
  Worklist work;
  int begun = 0;
  for (int i = 0; i < 100; ++i) {
    work.Push([&] {
      if (++begun == 10) work.Stop();
    });
  }
  work.Run(pool);
  EXPECT_EQ(begun, 10);
}

TEST(WorklistTest, RunThrowsWhatATaskThrows) {
  IoPool pool(4);
  Worklist work;
  std::atomic<int> begun{0};
  for (int i = 0; i < 100; ++i) {
    work.Push([&] {
      if (++begun == 10) throw std::bad_alloc();
    });
  }
  EXPECT_THROW(work.Run(pool), std::bad_alloc);
}

}  // namespace
}  // namespace shardpack

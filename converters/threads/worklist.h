// Worklist: tasks that make further tasks, run by all threads of an IoPool until none is left.
//
//   Worklist work;
//   work.Push([&] { Visit(root); });     // Visit pushes a task for each child
//   work.Run(io_pool);
//
// The newest task runs first, so a walk goes deep before it goes wide and holds little at a time.
//
// Lifetime: what tasks capture must outlive Run.
// Thread-safety: Push and Stop from any thread; one Run.
// Errors: tasks report through what they capture. After Stop the tasks that have not begun are
// dropped. An exception of a task stops the others in the same way; Run then throws it.
#ifndef SHARDPACK_CONVERTERS_THREADS_WORKLIST_H_
#define SHARDPACK_CONVERTERS_THREADS_WORKLIST_H_

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "converters/threads/io_pool.h"

namespace shardpack {

class Worklist {
 public:
  void Push(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      if (!stopped_) tasks_.push_back(std::move(task));
    }
    wake_.notify_one();
  }
  void Run(IoPool& pool) {
    pool.ForEach(static_cast<size_t>(pool.threads()), [&](size_t) { Work(pool); });
  }
  void Stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    tasks_.clear();
  }

 private:
  void Work(IoPool& pool) {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return !tasks_.empty() || running_ == 0; });
      if (tasks_.empty()) break;
      std::function<void()> task = std::move(tasks_.back());
      tasks_.pop_back();
      ++running_;
      lock.unlock();
      pool.NoteProgress();
      std::exception_ptr thrown;
      try {
        task();
      } catch (...) {
        thrown = std::current_exception();
      }
      task = nullptr;
      lock.lock();
      --running_;
      if (thrown == nullptr) continue;
      stopped_ = true;
      tasks_.clear();
      wake_.notify_all();
      std::rethrow_exception(thrown);
    }
    wake_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::function<void()>> tasks_;
  size_t running_ = 0;
  bool stopped_ = false;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_THREADS_WORKLIST_H_

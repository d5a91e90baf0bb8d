#include "converters/threads/io_pool.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <utility>

namespace shardpack {

IoPool::IoPool(int threads) {
  threads_.reserve(static_cast<size_t>(std::max(1, threads)));
  for (int i = 0; i < std::max(1, threads); ++i) {
    try {
      threads_.emplace_back([this] { Run(); });
    } catch (const std::system_error&) {
      if (threads_.empty()) throw;
      break;  // a limit on threads or memory: those there are do the work
    }
  }
}

IoPool::~IoPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void IoPool::Submit(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

void IoPool::ForEach(size_t count, const std::function<void(size_t)>& task) {
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::condition_variable done;
  const size_t runners = std::min(count, threads_.size());
  size_t running = runners;
  for (size_t r = 0; r < runners; ++r) {
    Submit([&] {
      for (size_t i = next++; i < count; i = next++) task(i);
      const std::lock_guard lock(
          mutex);  // notified under the lock: `done` dies right after the last runner
      if (--running == 0) done.notify_one();
    });
  }
  std::unique_lock lock(mutex);
  done.wait(lock, [&] { return running == 0; });
}

void IoPool::Run() {
  for (;;) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
  }
}

}  // namespace shardpack

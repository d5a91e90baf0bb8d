#include "converters/threads/io_pool.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <utility>

namespace shardpack {

IoPool::IoPool(int threads) {
  threads_.reserve(static_cast<size_t>(std::max(1, threads)));
  for (int i = 0; i < std::max(1, threads); ++i) {
    try {
      threads_.emplace_back([this] { Run(); });
    } catch (const std::exception&) {  // a limit on threads or memory
      if (threads_.empty()) throw;
      break;  // the others do the work
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
  size_t running = 0;
  std::exception_ptr thrown;
  const auto run = [&] {
    std::exception_ptr caught;
    try {
      for (size_t i = next++; i < count; i = next++) task(i);
    } catch (...) {
      caught = std::current_exception();
      next = count;
    }
    // Notified under the lock: `done` is destroyed right after the last runner.
    const std::lock_guard lock(mutex);
    if (thrown == nullptr) thrown = std::move(caught);
    if (--running == 0) done.notify_one();
  };
  std::unique_lock lock(mutex);
  for (size_t r = 0; r < std::min(count, threads_.size()); ++r) {
    try {
      Submit(std::ref(run));
    } catch (const std::exception&) {  // no memory
      if (running == 0) throw;
      break;  // the others do the work
    }
    ++running;
  }
  done.wait(lock, [&] { return running == 0; });
  if (thrown != nullptr) std::rethrow_exception(thrown);
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

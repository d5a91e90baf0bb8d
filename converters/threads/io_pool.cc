#include "converters/threads/io_pool.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "formats/io/resources.h"

namespace shardpack {
namespace {

// Longer than a task computes between two notes of progress, shorter than what anybody notices.
constexpr std::chrono::milliseconds kPatience{2};

// How often this thread has given up its core to wait for something.
int64_t Waits() {
  rusage usage = {};
  (void)::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

// Waits() when the task of this thread had read; -1: it has not said so.
thread_local int64_t waits_of_task = -1;

}  // namespace

IoPool::IoPool(int threads)
    : max_threads_(std::max(1, threads)),
      min_limit_(std::min(max_threads_, AvailableCores())),
      limit_(min_limit_) {
  threads_.reserve(static_cast<size_t>(max_threads_));
  threads_.emplace_back([this] { Run(); });
}

IoPool::~IoPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  patience_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void IoPool::Submit(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  WakeAnother();
}

void IoPool::EndReading() {
  waits_of_task = Waits();
  NoteProgress();
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
      for (size_t i = next++; i < count; i = next++) {
        NoteProgress();
        task(i);
      }
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
  for (size_t r = 0; r < std::min(count, static_cast<size_t>(max_threads_)); ++r) {
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
  std::unique_lock lock(mutex_);
  for (;;) {
    if (tasks_.empty() && stopping_) break;
    if (!tasks_.empty() && running_ < limit()) {
      RunOne(lock);
    } else if (!tasks_.empty() && !watching_ && limit() < max_threads_) {
      Watch(lock);
    } else {
      ++idle_;
      wake_.wait(lock);
      --idle_;
    }
  }
  wake_.notify_all();  // those who left the last tasks to others
}

void IoPool::RunOne(std::unique_lock<std::mutex>& lock) {
  std::function<void()> task = std::move(tasks_.front());
  tasks_.pop_front();
  ++running_;
  NoteProgress();
  WakeAnother();
  lock.unlock();
  const int64_t waits = Waits();
  waits_of_task = -1;
  task();
  task = nullptr;
  const int64_t now = waits_of_task >= 0 ? waits_of_task : Waits();
  const int change = now == waits ? -1 : 1;
  lock.lock();
  --running_;
  limit_ = std::clamp(limit() + change, min_limit_, max_threads_);
}

// If nothing begins for a while although tasks are there, all that run wait for the disk.
void IoPool::Watch(std::unique_lock<std::mutex>& lock) {
  watching_ = true;
  const uint64_t begun = begun_.load(std::memory_order_relaxed);
  patience_.wait_for(lock, kPatience);
  watching_ = false;
  const bool stuck = begun == begun_.load(std::memory_order_relaxed);
  if (stuck && running_ >= limit()) limit_ = std::min(2 * limit(), max_threads_);
}

// For the tasks that are there: another thread runs one, or watches those that run.
void IoPool::WakeAnother() {
  if (tasks_.empty() || (running_ >= limit() && watching_)) return;
  if (idle_ > 0) {
    wake_.notify_one();
  } else if (threads_.size() < static_cast<size_t>(std::min(limit() + 1, max_threads_))) {
    StartThread();
  }
}

void IoPool::StartThread() {
  if (!starts_threads_ || stopping_) return;
  try {
    threads_.emplace_back([this] { Run(); });
  } catch (const std::exception&) {  // a limit on threads or memory
    starts_threads_ = false;         // the others do the work
  }
}

}  // namespace shardpack

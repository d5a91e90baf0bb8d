#include "cuda/jpeg/worker_threads.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "formats/io/resources.h"

namespace shardpack {
namespace {

// The caller of Run does not leave it before the others have ended.
absl::Status Call(const WorkerThreads::Work& work, size_t thread) {
  try {
    return work(thread);
  } catch (const std::exception& error) {
    return StatusOfException("decoding images for a device", error);
  }
}

}  // namespace

WorkerThreads::~WorkerThreads() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  begin_.notify_all();
  for (Worker& worker : workers_) worker.thread.join();
}

void WorkerThreads::StartUpTo(size_t count) {
  while (workers_.size() < count) {
    Worker& worker = workers_.emplace_back();
    try {
      worker.thread =
          std::thread([this, &worker, number = workers_.size()] { RunWorker(worker, number); });
    } catch (const std::exception&) {  // no thread, or no memory for its start
      workers_.pop_back();
      return;
    }
  }
}

void WorkerThreads::RunWorker(Worker& worker, size_t number) {
  std::unique_lock lock(mutex_);
  for (;;) {
    begin_.wait(lock, [&] { return worker.has_work || ends_; });
    if (!worker.has_work) return;
    const Work& work = *work_;
    lock.unlock();
    absl::Status end = worker.entered ? absl::OkStatus() : enter_();
    worker.entered = end.ok();
    if (end.ok()) end = Call(work, number);
    lock.lock();
    worker.end = std::move(end);
    worker.has_work = false;
    if (--running_ == 0) done_.notify_one();
  }
}

absl::Status WorkerThreads::Run(size_t threads, const Work& work) {
  if (threads > 1) StartUpTo(threads - 1);
  const size_t others = threads > 1 ? std::min(threads - 1, workers_.size()) : 0;
  {
    const std::lock_guard lock(mutex_);
    work_ = &work;
    running_ = others;
    for (size_t i = 0; i < others; ++i) workers_[i].has_work = true;
  }
  if (others > 0) begin_.notify_all();
  absl::Status end = Call(work, 0);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return running_ == 0; });
  for (size_t i = 0; i < others; ++i) end.Update(workers_[i].end);
  return end;
}

}  // namespace shardpack

// WorkerThreads: threads that stay, and each do a part of one piece of work after the other.
//
//   WorkerThreads threads([&] { return device.EnterThread(); });
//   std::atomic<size_t> next{0};
//   absl::Status status = threads.Run(4, [&](size_t thread) -> absl::Status {
//     for (size_t i; (i = next++) < n;) RETURN_IF_ERROR(Do(i, thread));
//     return absl::OkStatus();
//   });
//
// Run makes one call on the caller's thread, with 0, and the others on threads that start when they
// are first needed and call `enter` before anything else. If some cannot be started there are fewer
// calls, so each must be able to do all the work that is left.
//
// Lifetime: the destructor joins; in a process that has forked since, nothing may be called.
// Thread-safety: one thread at a time.
// Errors: the first one, by the number of the thread, of the calls; an exception is one, too. A
// thread that fails to enter has that error, makes no call, and tries again the next time.
#ifndef SHARDPACK_CUDA_JPEG_WORKER_THREADS_H_
#define SHARDPACK_CUDA_JPEG_WORKER_THREADS_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/status/status.h"

namespace shardpack {

class WorkerThreads {
 public:
  using Work = std::function<absl::Status(size_t thread)>;

  explicit WorkerThreads(std::function<absl::Status()> enter) : enter_(std::move(enter)) {}
  ~WorkerThreads();
  WorkerThreads(const WorkerThreads&) = delete;
  WorkerThreads& operator=(const WorkerThreads&) = delete;

  absl::Status Run(size_t threads, const Work& work);

 private:
  struct Worker {
    bool has_work = false, entered = false;
    absl::Status end;
    std::thread thread;
  };

  // If so many can be had; the caller is not counted.
  void StartUpTo(size_t count);
  void RunWorker(Worker& worker, size_t number);

  const std::function<absl::Status()> enter_;
  std::mutex mutex_;
  std::condition_variable begin_, done_;
  const Work* work_ = nullptr;
  size_t running_ = 0;
  bool ends_ = false;
  std::deque<Worker> workers_;  // which keep their places
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_JPEG_WORKER_THREADS_H_

// IoPool: threads that spend their time in blocking reads, apart from the threads that compute.
//
//   IoPool pool(32);
//   pool.Submit([&] { ReadChunk(0); });
//   pool.ForEach(chunks, [&](size_t i) { Stat(i); });     // waits for all of them
//
// Why separate threads: a blocking read in a TBB worker idles a core. The number of outstanding
// reads (32 and more) depends on the disk, the number of computing threads on the cores.
//
// Lifetime: the destructor runs what was submitted, then joins.
// Thread-safety: all methods from any thread; ForEach not from a task of the same pool.
// Errors: tasks report through what they capture. The constructor throws if not even one thread can
// be started, Submit if there is no memory for the task.
#ifndef SHARDPACK_CONVERTERS_THREADS_IO_POOL_H_
#define SHARDPACK_CONVERTERS_THREADS_IO_POOL_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace shardpack {

class IoPool {
 public:
  explicit IoPool(int threads);
  ~IoPool();
  IoPool(const IoPool&) = delete;
  IoPool& operator=(const IoPool&) = delete;

  int threads() const { return static_cast<int>(threads_.size()); }
  // `task` must not throw.
  void Submit(std::function<void()> task);
  // Calls task(0) to task(count - 1), in any order. If one throws, those that have not begun are
  // left out, and the first exception is thrown when no other is running.
  void ForEach(size_t count, const std::function<void(size_t)>& task);

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_THREADS_IO_POOL_H_

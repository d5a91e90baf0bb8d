// IoPool: threads that spend their time in blocking reads, apart from the threads that compute.
//
//   IoPool pool(32);
//   pool.Submit([&] { ReadChunk(0); });
//   pool.ForEach(chunks, [&](size_t i) { Stat(i); });     // waits for all of them
//
// Lifetime: the destructor runs what was submitted, then joins.
// Thread-safety: all methods from any thread; ForEach not from a task of the same pool.
// Errors: tasks must not throw and report through what they capture. Why own threads: a blocking
// read in a TBB worker idles a core; the number of reads outstanding is a matter of the disk (32
// and more), the number of computing threads one of the cores.
#ifndef SHARDPACK_CONVERTERS_THREADS_IO_POOL_H_
#define SHARDPACK_CONVERTERS_THREADS_IO_POOL_H_

#include <condition_variable>
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
  void Submit(std::function<void()> task);
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

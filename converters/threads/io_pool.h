// IoPool: threads that spend their time in blocking reads, apart from the threads that compute.
//
//   IoPool pool(32);
//   pool.Submit([&] { ReadChunk(0); });
//   pool.ForEach(chunks, [&](size_t i) { Stat(i); });     // waits for all of them
//
// Why separate threads: a blocking read in a TBB worker idles a core. The number of outstanding
// reads (32 and more) depends on the disk, the number of computing threads on the cores.
//
// As many tasks run at once as there are cores while none waits for the disk: more threads would
// only take turns on the cores and in their caches. A task that has waited lets one more run; if
// nothing begins for a while, twice as many run. Threads are started when they are needed.
//
// Lifetime: the destructor runs what was submitted, then joins.
// Thread-safety: all methods from any thread; ForEach not from a task of the same pool.
// Errors: tasks report through what they capture. The constructor throws if not even one thread can
// be started, Submit if there is no memory for the task.
#ifndef SHARDPACK_CONVERTERS_THREADS_IO_POOL_H_
#define SHARDPACK_CONVERTERS_THREADS_IO_POOL_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
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

  // The most tasks that ever run at once.
  int threads() const { return max_threads_; }
  // How many may run at once now: more than this need not be submitted.
  int limit() const { return limit_.load(std::memory_order_relaxed); }
  // `task` must not throw.
  void Submit(std::function<void()> task);
  // Calls task(0) to task(count - 1), in any order. If one throws, those that have not begun are
  // left out, and the first exception is thrown when no other is running.
  void ForEach(size_t count, const std::function<void(size_t)>& task);
  // Called by a task that takes long whenever it begins another part of its work.
  void NoteProgress() { begun_.fetch_add(1, std::memory_order_relaxed); }
  // Called by a task that has read and goes on with other work, which is another part: its waits
  // from then on do not count.
  void EndReading();

 private:
  void Run();
  // Under mutex_, which `lock` holds:
  void RunOne(std::unique_lock<std::mutex>& lock);
  void Watch(std::unique_lock<std::mutex>& lock);
  void WakeAnother();
  void StartThread();

  const int max_threads_, min_limit_;
  std::atomic<int> limit_;
  std::atomic<uint64_t> begun_{0};  // tasks, and parts of long ones

  std::mutex mutex_;                  // guards what follows
  std::condition_variable wake_;      // of threads that have nothing to do
  std::condition_variable patience_;  // of the one that watches
  std::deque<std::function<void()>> tasks_;
  int running_ = 0;  // tasks
  int idle_ = 0;     // threads that wait for wake_
  bool watching_ = false;
  bool starts_threads_ = true;  // until the system refuses
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_THREADS_IO_POOL_H_

// RunOnThreads: makes one call on the caller's thread and more on new threads.
//
//   std::atomic<size_t> next{0};
//   RunOnThreads(threads, [&](size_t thread) { for (size_t i; (i = next++) < n;) Do(i, thread); });
//
// For work that takes milliseconds, so that starting threads costs little. If threads cannot be
// started there are fewer calls, so each must be able to do all the work that is left.
//
// Lifetime: returns when all calls have.
// Thread-safety: any thread.
// Errors: `work` must not throw.
#ifndef SHARDPACK_CUDA_KERNELS_RUN_ON_THREADS_H_
#define SHARDPACK_CUDA_KERNELS_RUN_ON_THREADS_H_

#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

namespace shardpack {

template <typename Work>
void RunOnThreads(size_t threads, const Work& work) {
  std::vector<std::thread> others;
  try {
    for (size_t i = 1; i < threads; ++i) others.emplace_back([&work, i] { work(i); });
  } catch (const std::system_error&) {
  }
  work(0);
  for (std::thread& other : others) other.join();
}

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_KERNELS_RUN_ON_THREADS_H_

// Leak: keeps an object to the end of the process, because a device that is lost or does not answer
// may still use what it owns.
//
//   if (!idle) Leak(std::move(batch));
//
// Lifetime: forever.
// Thread-safety: any thread.
#ifndef SHARDPACK_CUDA_DEVICE_LEAK_H_
#define SHARDPACK_CUDA_DEVICE_LEAK_H_

#include <mutex>
#include <utility>
#include <vector>

namespace shardpack {

template <typename T>
void Leak(T object) {
  static std::mutex mutex;
  static auto* const kept = new std::vector<T>();
  const std::lock_guard lock(mutex);
  kept->push_back(std::move(object));
}

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_DEVICE_LEAK_H_

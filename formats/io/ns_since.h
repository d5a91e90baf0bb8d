// NsSince: the nanoseconds since a moment, for counters of time.
//
//   const auto start = std::chrono::steady_clock::now();
//   busy_ns += NsSince(start);
//
// Thread-safety: any thread.
#ifndef SHARDPACK_FORMATS_IO_NS_SINCE_H_
#define SHARDPACK_FORMATS_IO_NS_SINCE_H_

#include <chrono>
#include <cstdint>

namespace shardpack {

inline uint64_t NsSince(std::chrono::steady_clock::time_point start) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start)
          .count());
}

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_IO_NS_SINCE_H_

// SecondsSince: the time since a point of the steady clock.
//
//   const auto start = std::chrono::steady_clock::now();  ...  Report(SecondsSince(start));
//
// Units: seconds.
#ifndef SHARDPACK_CLI_TERMINAL_SECONDS_SINCE_H_
#define SHARDPACK_CLI_TERMINAL_SECONDS_SINCE_H_

#include <chrono>

namespace shardpack::cli {

inline double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_TERMINAL_SECONDS_SINCE_H_

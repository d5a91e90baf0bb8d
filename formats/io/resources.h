// What this process may use: cores, memory, and what it has used so far.
//
//   int jobs = AvailableCores();                    // affinity and cgroup quota respected
//   uint64_t ceiling = AvailableMemoryBytes() / 4;
//   uint64_t peak = PeakMemoryBytes();
//
// Lifetime: none. Thread-safety: any thread. Errors: none; unreadable limits count as absent. Units: bytes.
#ifndef SHARDPACK_FORMATS_IO_RESOURCES_H_
#define SHARDPACK_FORMATS_IO_RESOURCES_H_

#include <cstdint>

namespace shardpack {

int AvailableCores();             // >= 1
uint64_t AvailableMemoryBytes();  // the machine's, or the control group's limit when that is less
uint64_t PeakMemoryBytes();       // largest resident set of this process

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_IO_RESOURCES_H_

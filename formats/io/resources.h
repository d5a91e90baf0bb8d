// What this process may use: cores, memory, and what it has used so far.
//
//   int jobs = AvailableCores();                    // affinity and cgroup quota respected
//   uint64_t ceiling = AvailableMemoryBytes() / 4;
//   uint64_t peak = PeakMemoryBytes();
//
// Thread-safety: any thread.
// Errors: none; unreadable limits count as absent.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_IO_RESOURCES_H_
#define SHARDPACK_FORMATS_IO_RESOURCES_H_

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string_view>

#include "absl/status/status.h"

namespace shardpack {

int AvailableCores();             // >= 1
uint64_t AvailableMemoryBytes();  // the machine's, or the control group's limit when that is less
uint64_t PeakMemoryBytes();       // largest resident set of this process
size_t OpenFilesLimit();          // descriptors that this process may have

// Whether the exception says that there is no memory or that no thread could be started.
bool IsLackOfResources(const std::exception& error);
// What is said of it: how much is in use, and what the limits are. Takes no memory; valid until the
// next call in this thread.
std::string_view DescribeLackOfResources();
// The exception that ended `work` as a status: ResourceExhausted for such a lack, else Internal.
absl::Status StatusOfException(std::string_view work, const std::exception& error);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_IO_RESOURCES_H_

// The resources of this process: available cores and memory, and peak usage.
//
//   int jobs = AvailableCores();                    // affinity and cgroup quota respected
//   uint64_t ceiling = AvailableMemoryBytes() / 4;
//   uint64_t peak = PeakMemoryBytes();
//
// Thread-safety: any thread.
// Errors: none; limits that cannot be read are ignored.
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
uint64_t AvailableMemoryBytes();  // of the machine, or the cgroup's limit if lower
uint64_t PeakMemoryBytes();       // largest resident set of this process
size_t OpenFilesLimit();          // file descriptors that this process may have open

// Whether the exception means out of memory, or that a thread could not be started.
bool IsLackOfResources(const std::exception& error);
// Describes such a lack: current use and limits. Allocates no memory; valid until the next call in
// this thread.
std::string_view DescribeLackOfResources();
// Converts the exception that ended `work` to a status: ResourceExhausted for lack of resources,
// otherwise Internal.
absl::Status StatusOfException(std::string_view work, const std::exception& error);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_IO_RESOURCES_H_

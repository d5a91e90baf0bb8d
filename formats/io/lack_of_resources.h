// IsLackOfResources: whether an error means that the process or its disk ran out of something
// (descriptors, memory, space), so that it says nothing about the file.
//
//   if (IsLackOfResources(file.status())) return file.status();    // end the run, skip no file
//
// Thread-safety: any thread.
#ifndef SHARDPACK_FORMATS_IO_LACK_OF_RESOURCES_H_
#define SHARDPACK_FORMATS_IO_LACK_OF_RESOURCES_H_

#include "absl/status/status.h"

namespace shardpack {

// True for ResourceExhausted, and for an IoStatus of EMFILE, ENFILE or ENOMEM.
bool IsLackOfResources(const absl::Status& status);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_IO_LACK_OF_RESOURCES_H_

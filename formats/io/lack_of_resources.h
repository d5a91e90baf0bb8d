// IsLackOfResources: whether an error says that this process, or its disk, ran out of something:
// descriptors, memory, space. It says nothing about what was to be read.
//
//   if (IsLackOfResources(file.status())) return file.status();    // ends the run, never a fact about a file
//
// Thread-safety: any thread.
// Errors: none.
#ifndef SHARDPACK_FORMATS_IO_LACK_OF_RESOURCES_H_
#define SHARDPACK_FORMATS_IO_LACK_OF_RESOURCES_H_

#include "absl/status/status.h"

namespace shardpack {

// True for ResourceExhausted, and for an IoStatus of EMFILE, ENFILE or ENOMEM.
bool IsLackOfResources(const absl::Status& status);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_IO_LACK_OF_RESOURCES_H_

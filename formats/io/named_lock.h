// LockNamed: keeps other runs of pack out of a file, and proves that it still has its name.
//
//   ASSIGN_OR_RETURN(const bool ours, LockNamed(file, AT_FDCWD, "out.plan.part"));
//   if (!ours) return busy;                         // else locked for as long as `file` is open
//
// The file has to be open for writing: some network file systems lock no other.
//
// Thread-safety: any thread.
// Errors: I/O; Unavailable also where the file system has no locks, for nothing would tell two runs
// apart there.
#ifndef SHARDPACK_FORMATS_IO_NAMED_LOCK_H_
#define SHARDPACK_FORMATS_IO_NAMED_LOCK_H_

#include <string>

#include "absl/status/statusor.h"
#include "formats/io/file.h"

namespace shardpack {

// False when another run holds it, or when it is no longer what `name` in `folder` (a descriptor)
// names.
absl::StatusOr<bool> LockNamed(const File& file, int folder, const std::string& name);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_IO_NAMED_LOCK_H_

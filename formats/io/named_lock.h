// LockNamed: locks a file against other runs of pack, and verifies that it still has its name.
//
//   ASSIGN_OR_RETURN(const bool ours, LockNamed(file, AT_FDCWD, "out.plan.part"));
//   if (!ours) return busy;                         // otherwise locked until `file` is closed
//
// The file must be open for writing: some network file systems cannot lock any other.
//
// Thread-safety: any thread.
// Errors: I/O; Unavailable also if the file system has no locks, since two runs could not see each
// other there.
#ifndef SHARDPACK_FORMATS_IO_NAMED_LOCK_H_
#define SHARDPACK_FORMATS_IO_NAMED_LOCK_H_

#include <string>

#include "absl/status/statusor.h"
#include "formats/io/file.h"

namespace shardpack {

// False if another run holds the lock, or if `name` in `folder` (a descriptor) now refers to
// another file.
absl::StatusOr<bool> LockNamed(const File& file, int folder, const std::string& name);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_IO_NAMED_LOCK_H_

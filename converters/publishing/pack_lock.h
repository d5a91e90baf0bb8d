// LockPackFolder: the lock that keeps two runs of pack out of one dataset's folder.
//
//   absl::StatusOr<File> lock = LockPackFolder("OUT");       // OUT/.pack exists
//   if (!lock.ok()) return lock.status();                     // "OUT is locked by another run"
//   ...                                                       // locked as long as `lock` is open
//
// Lifetime: the lock is gone with the file or the process, however that ends.
// Thread-safety: any thread.
// Errors: FailedPrecondition (exit 5) when another run holds it or has just finished, or `.pack` is
// not a folder of ours, or holds links in place of files; I/O.
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_PACK_LOCK_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_PACK_LOCK_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/io/file.h"

namespace shardpack {

// Neither `.pack` nor `.pack/stage`, whose files are removed, may be a link to somewhere else; nor
// may what is read, replaced and removed there be anything but a regular file.
absl::Status CheckPackFolder(const std::string& dataset);

// `dataset` is the folder with `.pack` in it.
absl::StatusOr<File> LockPackFolder(const std::string& dataset);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_PACK_LOCK_H_

// LockPackFolder: the lock that keeps two runs of pack out of one dataset's folder.
//
//   absl::StatusOr<File> lock = LockPackFolder("OUT");       // OUT/.pack exists
//   if (!lock.ok()) return lock.status();                     // "OUT is locked by another run"
//   ...                                                       // locked as long as `lock` is open
//
// Lifetime: the lock ends when the file is closed or the process ends, for any reason.
// Thread-safety: any thread.
// Errors: FailedPrecondition (exit 5) when another run holds it or has just finished, or `.pack` is
// not our folder, or holds links in place of files; I/O.
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_PACK_LOCK_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_PACK_LOCK_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/io/file.h"

namespace shardpack {

// FailedPrecondition when `.pack` or `.pack/stage`, from which files are removed, is a link, or
// when a file that is read, replaced or removed there is not a regular file.
absl::Status CheckPackFolder(const std::string& dataset);

// `dataset` is the folder that holds `.pack`.
// Unless `needed`, a file system without locks is not an error.
absl::StatusOr<File> LockPackFolder(const std::string& dataset, bool needed = true);

struct SharedPackFolder {
  File file;
  bool created = false;  // by this call
};

// Keeps those out, but lets others that share the folder in. Where nothing can be created, or the
// file system has no locks, nothing is locked.
absl::StatusOr<SharedPackFolder> SharePackFolder(const std::string& dataset);
// For a run that is refused and shall have changed nothing: removes a lock that it has created and
// that nobody else uses.
void UndoSharing(const std::string& dataset, SharedPackFolder shared);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_PACK_LOCK_H_

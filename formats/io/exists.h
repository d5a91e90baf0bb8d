// Exists: whether a path exists. An error while checking is an error, not "no".
//
//   absl::StatusOr<bool> there = Exists("OUT/manifest.json");
//   if (!there.ok()) return there.status();
//
// A symbolic link exists whatever its target is.
//
// Thread-safety: any thread.
// Errors: those of checking, except that a missing parent folder means false.
#ifndef SHARDPACK_FORMATS_IO_EXISTS_H_
#define SHARDPACK_FORMATS_IO_EXISTS_H_

#include <errno.h>
#include <sys/stat.h>

#include <string>

#include "absl/status/statusor.h"
#include "formats/io/file.h"

namespace shardpack {

inline absl::StatusOr<bool> Exists(const std::string& path) {
  struct stat facts;
  if (::lstat(path.c_str(), &facts) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return IoStatus("look at", path, errno);
}

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_IO_EXISTS_H_

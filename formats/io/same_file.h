// FindSameFile: whether several paths name the same file, through links, mounts or different
// spellings. IsSameFile: whether two results of stat() are of the same file.
//
//   ASSIGN_OR_RETURN(const std::optional<NamedTwice> twice, FindSameFile(paths));
//   if (twice) Refuse(paths[twice->again], paths[twice->first]);
//
// Thread-safety: any thread; reads only the file system.
// Errors: I/O. Paths that do not exist or cannot be accessed are skipped; opening them reports why.
#ifndef SHARDPACK_FORMATS_IO_SAME_FILE_H_
#define SHARDPACK_FORMATS_IO_SAME_FILE_H_

#include <sys/stat.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace shardpack {

inline bool IsSameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

struct NamedTwice {
  size_t first = 0, again = 0;  // indexes into the paths
};

// The first path that names the same file as an earlier one.
absl::StatusOr<std::optional<NamedTwice>> FindSameFile(std::span<const std::string> paths);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_IO_SAME_FILE_H_

// FindSameFile: whether several paths name one file, over links, mounts and other spellings.
//
//   ASSIGN_OR_RETURN(const std::optional<SameFile> twice, FindSameFile(paths));
//   if (twice) Refuse(paths[twice->again], paths[twice->first]);
//
// Thread-safety: pure but for the file system.
// Errors: I/O. What is not there, or may not be looked at, is no file of these: opening it says
// why.
#ifndef SHARDPACK_FORMATS_IO_SAME_FILE_H_
#define SHARDPACK_FORMATS_IO_SAME_FILE_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace shardpack {

struct SameFile {
  size_t first = 0, again = 0;  // positions among the paths
};

// The first path whose file an earlier one names as well.
absl::StatusOr<std::optional<SameFile>> FindSameFile(std::span<const std::string> paths);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_IO_SAME_FILE_H_

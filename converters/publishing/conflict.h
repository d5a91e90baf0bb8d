// Conflict: the error for what is there and stands in the way of what is to be written.
//
//   return Conflict(path, "is not a file; move it away and run again");
//
// Thread-safety: a pure function.
// Errors: FailedPrecondition, which begins with the path.
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_CONFLICT_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_CONFLICT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "formats/io/file.h"

namespace shardpack {

inline absl::Status Conflict(const std::string& path, const std::string& why) {
  return absl::FailedPreconditionError(absl::StrCat(EscapeForTerminal(path), " ", why));
}

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_CONFLICT_H_

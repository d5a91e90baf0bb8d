// The folder that a dataset goes to: which ones are refused, and which one to offer.
//
//   absl::Status fits = CheckOut(line.out, line.arguments[0]);
//   std::string offered = OutFor("photos/");   // "photos-shards"
//
// Thread-safety: pure but for looking at the file system.
// Errors: InvalidArgument (exit 2).
#ifndef SHARDPACK_CLI_COMMANDS_OUT_FOLDER_H_
#define SHARDPACK_CLI_COMMANDS_OUT_FOLDER_H_

#include <string>

#include "absl/status/status.h"

namespace shardpack::cli {

// Refuses an OUT that looks like a file, and one that is SRC, lies in it or around it: by links,
// by `..` or by another mount of the same folder too. `source` may be empty.
absl::Status CheckOut(const std::string& out, const std::string& source);

// Whether the path is the folder or lies below it, by links, `..` and mounts too.
bool LiesIn(const std::string& path, const std::string& folder);

// An OUT for this source that CheckOut takes: beside the working folder's files, or where that
// would be in the source, beside the source.
std::string OutFor(const std::string& source);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_COMMANDS_OUT_FOLDER_H_

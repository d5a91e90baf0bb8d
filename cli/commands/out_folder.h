// The output folder of a dataset, or of lists: which ones are refused, and which one to suggest.
//
//   absl::Status fits = CheckOut(line.out, line.arguments[0]);
//   std::string offered = OutFor("photos/");   // "photos-shards"
//
// Thread-safety: pure except for reading the file system.
// Errors: InvalidArgument (exit 2).
#ifndef SHARDPACK_CLI_COMMANDS_OUT_FOLDER_H_
#define SHARDPACK_CLI_COMMANDS_OUT_FOLDER_H_

#include <string>

#include "absl/status/status.h"

namespace shardpack::cli {

// Refuses an OUT that looks like a file, and one that is SRC, is inside SRC, or contains it,
// including by links, `..` or another mount of the same folder. `source` may be empty.
absl::Status CheckOut(const std::string& out, const std::string& source);

// The same for the folder of pack list --write, whatever its name ends with.
absl::Status CheckLists(const std::string& lists, const std::string& source);

// Whether the path is the folder or is below it, also by links, `..` and mounts.
bool LiesIn(const std::string& path, const std::string& folder);

// Suggests an OUT for this source that CheckOut accepts: in the working folder, or next to the
// source if the working folder is inside it.
std::string OutFor(const std::string& source);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_COMMANDS_OUT_FOLDER_H_

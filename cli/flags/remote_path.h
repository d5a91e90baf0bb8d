// RefuseUrl: the error for a URL, which `pack` cannot read or write, with an alternative.
//
//   if (!SchemeOf(path).empty()) return RefuseUrl("-o", path, PathUse::kWritesFolder);
//
// Errors: returns InvalidArgument (exit 2) with the command that copies the files.
#ifndef SHARDPACK_CLI_FLAGS_REMOTE_PATH_H_
#define SHARDPACK_CLI_FLAGS_REMOTE_PATH_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace shardpack::cli {

enum class PathUse : uint8_t { kReads, kReadsFile, kWritesFolder, kWritesFile };

// `where` names the flag or argument that holds `url`.
absl::Status RefuseUrl(std::string_view where, const std::string& url, PathUse use);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_FLAGS_REMOTE_PATH_H_

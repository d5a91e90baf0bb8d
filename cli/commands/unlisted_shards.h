// UnlistedShards: the shards in a dataset's folder that its manifest does not list, hidden ones
// too. Nothing of them is in the dataset.
//
//   const std::string line = UnlistedShards("OUT", manifest);   // "" when there is none
//   if (!line.empty()) terminal.Warn(line);
//
// Thread-safety: any thread.
// Errors: none; what cannot be looked at is not named.
#ifndef SHARDPACK_CLI_COMMANDS_UNLISTED_SHARDS_H_
#define SHARDPACK_CLI_COMMANDS_UNLISTED_SHARDS_H_

#include <string>

#include "formats/core/manifest.h"

namespace shardpack::cli {

std::string UnlistedShards(const std::string& folder, const Manifest& manifest);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_COMMANDS_UNLISTED_SHARDS_H_

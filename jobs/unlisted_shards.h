// UnlistedShards: names the shards in a dataset's folder that its manifest does not list, including
// hidden ones. Their samples are not in the dataset.
//
//   const std::string line = UnlistedShards("OUT", manifest);   // "" when there is none
//   if (!line.empty()) terminal.Warn(line);
//
// Thread-safety: any thread.
// Errors: none; files that cannot be inspected are not named.
#ifndef SHARDPACK_JOBS_UNLISTED_SHARDS_H_
#define SHARDPACK_JOBS_UNLISTED_SHARDS_H_

#include <string>

#include "formats/core/manifest.h"

namespace shardpack {

std::string UnlistedShards(const std::string& folder, const Manifest& manifest);

}  // namespace shardpack

#endif  // SHARDPACK_JOBS_UNLISTED_SHARDS_H_

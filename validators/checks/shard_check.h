// CheckShard: one shard of a dataset against its manifest row and its index. CheckForeignShard: one
// without either.
//
//   CheckShard(shard, run, outcome);   // {.root, .manifest, .shard, .format, .folder}
//   CheckForeignShard("imagenet-000.tar", formats, run, outcome);
//   if (!outcome.complete) ...         // stopped, or it could not be read
//
// Full: one sequential pass feeds the file's hash, the format's own checks and the comparison with
// the index. Quick, and a sample of the records: positioned reads of these records. Deep then
// decodes the images.
//
// Lifetime: borrow all arguments for the call.
// Thread-safety: shards may be checked at once, each with its own outcome.
// Errors: findings.
// Units: bytes.
#ifndef SHARDPACK_VALIDATORS_CHECKS_SHARD_CHECK_H_
#define SHARDPACK_VALIDATORS_CHECKS_SHARD_CHECK_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/core/format.h"
#include "formats/core/manifest.h"
#include "validators/checks/check_run.h"
#include "validators/checks/folder_check.h"

namespace shardpack {

struct ShardTask {
  const std::string& root;
  const Manifest& manifest;
  size_t shard = 0;
  const Format* format = nullptr;  // null when it is not known: then only hashes are compared
  const FolderCheck& folder;
};

void CheckShard(const ShardTask& task, const CheckRun& run, ShardOutcome& outcome);

// `path` exists. A format is told from the first bytes and the name.
void CheckForeignShard(const std::string& path, std::span<const Format* const> formats,
                       const CheckRun& run, ShardOutcome& outcome);

// The keys of these records (ascending), for those few whose hashes repeat. Errors: of reading.
absl::StatusOr<std::vector<std::string>> KeysOfShard(const ShardTask& task,
                                                     std::span<const uint64_t> records);
absl::StatusOr<std::vector<std::string>> KeysOfForeignShard(const std::string& path,
                                                            std::span<const Format* const> formats,
                                                            std::span<const uint64_t> records);

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_CHECKS_SHARD_CHECK_H_

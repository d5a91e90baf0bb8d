// CheckShard: checks one shard of a dataset against its manifest row and its index.
// CheckForeignShard: checks one by itself, and its bytes against a manifest that lies beside it.
//
//   CheckShard(shard, run, outcome);   // {.root, .manifest, .shard, .format, .folder}
//   CheckForeignShard("imagenet-000.tar", beside, formats, run, outcome);
//   if (!outcome.complete) ...         // stopped, or unreadable
//
// Full: one sequential pass feeds the file's hash, the format's own checks and the comparison with
// the index. Quick, or with a sample of the records: positioned reads of those records. Deep then
// decodes the images.
//
// Lifetime: borrows all arguments during the call.
// Thread-safety: shards may be checked concurrently, each with its own outcome.
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
#include "formats/core/manifests_beside.h"
#include "validators/checks/check_run.h"
#include "validators/checks/folder_check.h"

namespace shardpack {

struct ShardTask {
  const std::string& root;
  const Manifest& manifest;
  size_t shard = 0;
  const Format* format = nullptr;  // null if unknown: then only hashes are compared
  const FolderCheck& folder;
};

void CheckShard(const ShardTask& task, const CheckRun& run, ShardOutcome& outcome);

// `path` exists. The format is recognised by the first bytes and the name.
void CheckForeignShard(const std::string& path, const ManifestsBeside::Found& beside,
                       std::span<const Format* const> formats, const CheckRun& run,
                       ShardOutcome& outcome);

// The keys of these records (ascending), for the few whose hashes occur more than once. Errors: of
// reading.
absl::StatusOr<std::vector<std::string>> KeysOfShard(const ShardTask& task,
                                                     std::span<const uint64_t> records);
absl::StatusOr<std::vector<std::string>> KeysOfForeignShard(const std::string& path,
                                                            std::span<const Format* const> formats,
                                                            std::span<const uint64_t> records);

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_CHECKS_SHARD_CHECK_H_

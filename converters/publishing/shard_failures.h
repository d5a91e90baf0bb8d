// ReadShardFailures: the shards that workers could not build, as they have noted it in
// `.pack/failed`.
//
//   absl::StatusOr<std::map<uint32_t, ShardFailure>> failures = ReadShardFailures(dataset);
//   for (const auto& [shard, failure] : *failures) Show(shard, failure.workers, failure.why);
//
// A shard may be done in spite of them: another worker has built it since.
//
// Lifetime: plain values.
// Thread-safety: pure except for the file system.
// Errors: I/O Status.
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_SHARD_FAILURES_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_SHARD_FAILURES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "converters/publishing/owned_folder.h"

namespace shardpack {

struct ShardFailure {
  // So many workers may fail at a shard before the others leave it alone.
  static constexpr size_t kMostWorkers = 3;

  size_t workers = 0;
  std::string why;  // what the last of them said

  bool is_left_alone() const { return workers >= kMostWorkers; }
  // "2 workers: read ...", for the user.
  std::string Text() const;
};

absl::StatusOr<std::map<uint32_t, ShardFailure>> ReadShardFailures(const OwnedFolder& dataset);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_SHARD_FAILURES_H_

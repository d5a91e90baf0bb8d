// ScanForeignShard: the index that a shard of another tool does not bring along.
//
//   absl::StatusOr<ForeignShard> shard = ScanForeignShard("imagenet-000.tar", formats);
//   uint64_t samples = shard->index.records();
//
// Lifetime: the result owns its memory.
// Thread-safety: pure but for the file.
// Errors: NotFound; InvalidArgument when no format takes the file; DataLoss with the first damage
// found; Unimplemented when the container has no extents; I/O; what the hook answers.
// Units: bytes.
// Memory: the index, and with `probe` the largest image.
#ifndef SHARDPACK_READERS_DATASET_FOREIGN_SHARD_H_
#define SHARDPACK_READERS_DATASET_FOREIGN_SHARD_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/core/format.h"
#include "formats/core/shard_index.h"

namespace shardpack {

struct ForeignShard {
  const Format* format = nullptr;
  std::string data_path;  // differs from the path given when a shard of this format is a folder
  uint64_t bytes = 0;
  Digest digest;  // of the data file
  ShardIndex index;
  std::vector<std::string> left_out;  // names of values that no field of the index is
  std::vector<std::string> warnings;  // what is odd, but can be read; the first of many
  // What the labels of the shard were lowered by so that they count from 0; nullopt when no sample
  // has one.
  std::optional<int64_t> label_base;
  // Samples whose label is the background's, which is none; also told by a warning.
  uint64_t background = 0;
};

struct ForeignScanOptions {
  // What the shard stores for class 0, where a manifest says so; else as its layout has it.
  std::optional<int64_t> label_base = std::nullopt;
  bool probe = false;  // fills the index's column of image facts, for which it reads images twice
  // Told of every block that was read; an error ends the scan.
  std::function<absl::Status(uint64_t bytes)> on_block = nullptr;
};

absl::StatusOr<ForeignShard> ScanForeignShard(const std::string& path,
                                              std::span<const Format* const> formats,
                                              const ForeignScanOptions& options = {});

// What ForeignShard::background means, in a sentence.
std::string BackgroundWarning(const std::string& path, uint64_t background, uint64_t records);

// Which format takes the shard, and its data file; as ScanForeignShard without the scan.
struct ForeignShardKind {
  const Format* format = nullptr;
  std::string data_path;
};
absl::StatusOr<ForeignShardKind> FindForeignShard(const std::string& path,
                                                  std::span<const Format* const> formats);

}  // namespace shardpack

#endif  // SHARDPACK_READERS_DATASET_FOREIGN_SHARD_H_

// ScanForeignShard: builds an index for a third-party shard, which comes without one.
//
//   absl::StatusOr<ForeignShard> shard = ScanForeignShard("imagenet-000.tar", formats);
//   uint64_t samples = shard->index.records();
//
// Lifetime: the result owns its memory.
// Thread-safety: any thread; reads only the file.
// Errors: NotFound; InvalidArgument if no format accepts the file; DataLoss with the first damage
// found; Unimplemented if the container has no extents; I/O; the error of the hook.
// Units: bytes.
// Memory: the index; with `probe` also the largest image.
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
  std::string data_path;  // differs from the given path if a shard of this format is a folder
  uint64_t bytes = 0;
  Digest digest;  // of the data file
  ShardIndex index;
  std::vector<std::string> left_out;  // names of values that are not in any field of the index
  std::vector<std::string> warnings;  // odd but readable; a long list is cut off
  // The amount subtracted from the shard's labels so that they count from 0; nullopt if no sample
  // has one.
  std::optional<int64_t> label_base;
  // Samples with the background label, which counts as no label; a warning reports them too.
  uint64_t background = 0;
};

struct ForeignScanOptions {
  // The value stored for class 0, if a manifest gives it; otherwise the layout's own.
  std::optional<int64_t> label_base = std::nullopt;
  bool probe = false;  // fills the index's column of image facts; reads images twice
  // Called for every block read; an error ends the scan.
  std::function<absl::Status(uint64_t bytes)> on_block = nullptr;
};

absl::StatusOr<ForeignShard> ScanForeignShard(const std::string& path,
                                              std::span<const Format* const> formats,
                                              const ForeignScanOptions& options = {});

// One sentence that explains ForeignShard::background.
std::string BackgroundWarning(const std::string& path, uint64_t background, uint64_t records);

// Finds the format of the shard and its data file: ScanForeignShard without the scan.
struct ForeignShardKind {
  const Format* format = nullptr;
  std::string data_path;
};
absl::StatusOr<ForeignShardKind> FindForeignShard(const std::string& path,
                                                  std::span<const Format* const> formats);

}  // namespace shardpack

#endif  // SHARDPACK_READERS_DATASET_FOREIGN_SHARD_H_

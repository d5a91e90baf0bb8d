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
// Memory: the index, which is at most a multiple of the shard; with `probe` also the largest image
// that is looked at.
#ifndef SHARDPACK_READERS_DATASET_FOREIGN_SHARD_H_
#define SHARDPACK_READERS_DATASET_FOREIGN_SHARD_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/core/format.h"
#include "formats/core/shard_index.h"
#include "readers/dataset/shard_warnings.h"

namespace shardpack {

// Where WebDataset has labels, also those that are not numbers.
inline constexpr std::string_view kLabelTextField = "cls", kLabelTextFormat = "webdataset";

struct ForeignShard {
  const Format* format = nullptr;
  std::string data_path;  // differs from the given path if a shard of this format is a folder
  uint64_t bytes = 0;
  Digest digest;  // of the data file
  ShardIndex index;
  std::vector<std::string> left_out;  // names of values that are not in any field of the index
  std::vector<ShardWarning>
      warnings;                  // odd but readable; one of each kind, with the number of others
  std::vector<LostSample> lost;  // each is also in a warning
  // The amount subtracted from the shard's labels so that they count from 0; nullopt if no sample
  // has one.
  std::optional<int64_t> label_base;
  // Samples with the background label, which counts as no label; a warning reports them too.
  uint64_t background = 0;
};

struct ForeignScanOptions {
  // The value stored for class 0, if a manifest gives it; otherwise the layout's own.
  std::optional<int64_t> label_base = std::nullopt;
  bool probe = false;        // fills the index's column of image facts; reads images twice
  bool has_classes = false;  // as ScanOptions::has_classes
  // Called for every block read; an error ends the scan.
  std::function<absl::Status(uint64_t bytes)> on_block = nullptr;
};

absl::StatusOr<ForeignShard> ScanForeignShard(const std::string& path,
                                              std::span<const Format* const> formats,
                                              const ForeignScanOptions& options = {});

// A dataset counts the labels of all its shards from the same number.
class SameLabelBase {
 public:
  // InvalidArgument if it is not that of the shards before.
  absl::Status Add(const std::string& path, std::optional<int64_t> label_base);

 private:
  std::string first_;  // the path that `base_` is from
  std::optional<int64_t> base_;
};

// Finds the format of the shard and its data file: ScanForeignShard without the scan.
struct ForeignShardKind {
  const Format* format = nullptr;
  std::string data_path;
};
absl::StatusOr<ForeignShardKind> FindForeignShard(const std::string& path,
                                                  std::span<const Format* const> formats);

}  // namespace shardpack

#endif  // SHARDPACK_READERS_DATASET_FOREIGN_SHARD_H_

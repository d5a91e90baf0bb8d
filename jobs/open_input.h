// OpenInput: opens the paths given by a user: a dataset, or shards of any tool.
//
//   absl::StatusOr<Dataset> dataset = OpenInput(paths);
//
// Thread-safety: pure except for reading.
// Errors: InvalidArgument for a path that does not exist or is not a shard; DataLoss; I/O Status.
#ifndef SHARDPACK_JOBS_OPEN_INPUT_H_
#define SHARDPACK_JOBS_OPEN_INPUT_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "converters/sources/shard_splits.h"
#include "readers/dataset/dataset.h"

namespace shardpack {

// What the paths are. InvalidArgument for several datasets, and for a dataset among shards.
enum class InputKind : uint8_t { kDataset, kShards };
absl::StatusOr<InputKind> KindOfInput(std::span<const std::string> paths);

// Individual shards get their class names and splits from the manifests next to them, or else
// splits from their names. If manifests are damaged or disagree, the labels remain numbers and
// `doubt`, if given, says why; with `same_labels` this is an error.
absl::StatusOr<Dataset> OpenInput(std::span<const std::string> paths, bool same_labels = false,
                                  std::string* doubt = nullptr);

// The splits according to the file names of the shards.
ShardSplits SplitsOfShards(std::span<const std::string> paths);

}  // namespace shardpack

#endif  // SHARDPACK_JOBS_OPEN_INPUT_H_

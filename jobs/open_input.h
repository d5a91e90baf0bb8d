// OpenInput: what the paths of a user name: a dataset, or shards of any tool.
//
//   absl::StatusOr<Dataset> dataset = OpenInput(paths);
//
// Thread-safety: pure but for reading.
// Errors: InvalidArgument for what is not there or no shard; DataLoss; I/O Status.
#ifndef SHARDPACK_JOBS_OPEN_INPUT_H_
#define SHARDPACK_JOBS_OPEN_INPUT_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "converters/sources/shard_splits.h"
#include "readers/dataset/dataset.h"

namespace shardpack {

// What the paths name. InvalidArgument for several datasets, and for a dataset among shards.
enum class InputKind : uint8_t { kDataset, kShards };
absl::StatusOr<InputKind> KindOfInput(std::span<const std::string> paths);

// Shards named one by one get the names of their classes, and their splits, from the manifests
// beside them; else the splits that their names tell. Where manifests are damaged or do not agree
// there are only numbers, and `doubt`, if given, says why; or, with `same_labels`, an error.
absl::StatusOr<Dataset> OpenInput(std::span<const std::string> paths, bool same_labels = false,
                                  std::string* doubt = nullptr);

// What the names of the shards' files tell.
ShardSplits SplitsOfShards(std::span<const std::string> paths);

}  // namespace shardpack

#endif  // SHARDPACK_JOBS_OPEN_INPUT_H_

// Selection: the samples that info, ls, cat and extract read of a dataset, or of shards of any
// tool.
//
//   absl::StatusOr<Dataset> dataset = OpenInput(line.arguments);
//   absl::StatusOr<Selection> selection = Selection::Make(*dataset, line);
//   const auto visit = [](const SampleRow& row) { return true; };
//   absl::Status walked = ForEachSample(*dataset, *selection, visit);
//
// Lifetime: a SampleRow is valid during the call.
// Thread-safety: pure but for reading.
// Errors: InvalidArgument for what is not there or no shard (exit 2), with the nearest split or
// class; DataLoss; I/O Status.
// Units: bytes.
#ifndef SHARDPACK_CLI_COMMANDS_SELECTION_H_
#define SHARDPACK_CLI_COMMANDS_SELECTION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/flags/command_line.h"
#include "cli/terminal/terminal.h"
#include "formats/core/shard_index.h"
#include "jobs/open_input.h"
#include "readers/dataset/dataset.h"

namespace shardpack::cli {

// OpenInput, with a warning where labels have no names though manifests lie beside the shards.
absl::StatusOr<Dataset> OpenShown(std::span<const std::string> paths, bool same_labels,
                                  Terminal& terminal);

// --split, --label, --limit.
struct Selection {
  std::string split;
  std::optional<int64_t> label;
  uint64_t limit = 0;

  static absl::StatusOr<Selection> Make(const Dataset& dataset, const CommandLine& line);
};

struct SampleRow {
  uint64_t id = 0;  // over all shards
  const DatasetShard& shard;
  const ShardIndex& index;
  uint64_t record = 0;  // within the shard
};

// Calls `visit` for each chosen sample, in order, until it answers false.
absl::Status ForEachSample(const Dataset& dataset, const Selection& selection,
                           const std::function<bool(const SampleRow&)>& visit);

// What the sample's index says of the image, or for a foreign shard, which has no such column, what
// the image itself says; unknown when it cannot be read.
absl::StatusOr<ImageInfo> ImageOf(const Dataset& dataset, const SampleRow& row);
// The same where the image's bytes have been read.
ImageInfo ImageOf(const SampleRow& row, Bytes image);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_COMMANDS_SELECTION_H_

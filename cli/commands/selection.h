// Selection: the samples of a dataset, or of shards of any tool, that info, ls, cat and extract
// read.
//
//   absl::StatusOr<Dataset> dataset = OpenInput(line.arguments);
//   absl::StatusOr<Selection> selection = Selection::Make(*dataset, line);
//   const auto visit = [](const SampleRow& row) { return true; };
//   absl::Status walked = ForEachSample(*dataset, *selection, visit);
//
// Lifetime: a SampleRow is valid during the call.
// Thread-safety: pure except for reading.
// Errors: InvalidArgument for a path that does not exist or is not a shard (exit 2), with the
// nearest split or class; DataLoss; I/O Status.
// Units: bytes.
#ifndef SHARDPACK_CLI_COMMANDS_SELECTION_H_
#define SHARDPACK_CLI_COMMANDS_SELECTION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/flags/command_line.h"
#include "cli/terminal/terminal.h"
#include "jobs/open_input.h"
#include "readers/dataset/dataset.h"
#include "readers/dataset/sample_row.h"
#include "validators/looking/shards_with_index.h"

namespace shardpack::cli {

// OpenInput, with a warning if labels have no names although there are manifests next to the
// shards.
absl::StatusOr<Dataset> OpenShown(std::span<const std::string> paths, bool same_labels,
                                  Terminal& terminal);

// The same of a dataset whose files are missing or have another size, too: `damage` names them.
absl::StatusOr<Dataset> OpenShownDamaged(std::span<const std::string> paths, Terminal& terminal,
                                         std::vector<DamagedFile>& damage);

// Warns of what is damaged, the first messages below `head`, if there are any.
void WarnDamage(const std::vector<std::string>& messages, const std::string& head,
                Terminal& terminal);

// What can be compared with others of what OpenShownDamaged opens: the shards whose index can be
// read. Warns of the rest, and adds it to `damage`.
absl::StatusOr<Dataset> OpenCompared(std::span<const std::string> paths, Terminal& terminal,
                                     DatasetDamage& damage);

// The flags --split, --label and --limit.
struct Selection {
  std::string split;
  std::optional<int64_t> label;
  uint64_t limit = 0;

  static absl::StatusOr<Selection> Make(const Dataset& dataset, const CommandLine& line);
};

// Calls `visit` for each selected sample, in order, until it returns false.
absl::Status ForEachSample(const Dataset& dataset, const Selection& selection,
                           const std::function<bool(const SampleRow&)>& visit);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_COMMANDS_SELECTION_H_

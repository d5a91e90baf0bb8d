#include "cli/commands/selection.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/flags/suggest.h"
#include "cli/terminal/units.h"
#include "formats/core/sample.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack::cli {
namespace {

using absl::InvalidArgumentError;
using absl::StrCat;

std::vector<std::string> SplitNames(const Dataset& dataset) {
  std::vector<std::string> names;
  for (const DatasetShard& shard : dataset.shards()) {
    if (std::find(names.begin(), names.end(), shard.split) == names.end())
      names.push_back(shard.split);
  }
  return names;
}

}  // namespace

absl::StatusOr<Dataset> OpenShown(std::span<const std::string> paths, bool same_labels,
                                  Terminal& terminal) {
  std::string doubt;
  absl::StatusOr<Dataset> dataset = OpenInput(paths, same_labels, &doubt);
  if (!doubt.empty()) terminal.Warn(StrCat("labels are numbers without names: ", doubt));
  if (dataset.ok()) {
    for (const std::string& warning : dataset->warnings()) terminal.Warn(warning);
  }
  return dataset;
}

absl::StatusOr<Dataset> OpenShownDamaged(std::span<const std::string> paths, Terminal& terminal,
                                         std::vector<DamagedFile>& damage) {
  absl::StatusOr<Dataset> dataset = OpenShown(paths, /*same_labels=*/false, terminal);
  if (!absl::IsDataLoss(dataset.status()) || paths.size() != 1) return dataset;
  absl::StatusOr<Dataset> damaged = Dataset::OpenDamaged(paths[0], damage);
  // Where there is no manifest, the first failure tells more.
  return damaged.ok() || absl::IsFailedPrecondition(damaged.status()) ? damaged : dataset;
}

void WarnDamage(const std::vector<std::string>& messages, const std::string& head,
                Terminal& terminal) {
  constexpr size_t kShown = 10;
  if (messages.empty()) return;
  std::string text = head;
  for (size_t i = 0; i < std::min(kShown, messages.size()); ++i)
    absl::StrAppend(&text, "\n  ", messages[i]);
  if (messages.size() > kShown) absl::StrAppend(&text, "\n  and more; --json has them all");
  terminal.Warn(text);
}

absl::StatusOr<Dataset> OpenCompared(std::span<const std::string> paths, Terminal& terminal,
                                     DatasetDamage& damage) {
  DatasetDamage found;
  ASSIGN_OR_RETURN(const Dataset dataset, OpenShownDamaged(paths, terminal, found.files));
  ASSIGN_OR_RETURN(Dataset left, ShardsWithIndex(dataset, found));
  const std::string name = EscapeForTerminal(paths[0]);
  WarnDamage(Reasons(found.files),
             StrCat(name,
                    " is damaged; what the indexes say of these files is compared, as far as "
                    "these can be read:"),
             terminal);
  WarnDamage(found.not_looked_at,
             StrCat(name,
                    " is damaged; not compared are the samples of these indexes (pack repair "
                    "rebuilds what is missing):"),
             terminal);
  const auto add = [](const auto& from, auto& to) {
    to.insert(to.end(), from.begin(), from.end());
  };
  add(found.files, damage.files);
  add(found.not_looked_at, damage.not_looked_at);
  return left;
}

absl::StatusOr<Selection> Selection::Make(const Dataset& dataset, const CommandLine& line) {
  Selection selection;
  selection.limit = line.samples().limit;
  if (!line.samples().split.empty()) {
    const std::vector<std::string> names = SplitNames(dataset);
    if (std::find(names.begin(), names.end(), line.samples().split) == names.end()) {
      std::string known;
      for (const std::string& name : names)
        absl::StrAppend(&known, known.empty() ? "" : ", ", EscapeForTerminal(name));
      return InvalidArgumentError(StrCat(
          "--split ", EscapeForTerminal(line.samples().split), ": there is no such split, only ",
          known.empty() ? "one without a name" : known, DidYouMean(line.samples().split, names)));
    }
    selection.split = line.samples().split;
  }
  if (line.samples().label.has_value()) {
    const auto classes = dataset.classes();
    const auto found = std::find(classes.begin(), classes.end(), *line.samples().label);
    const absl::StatusOr<uint64_t> number = ParseCount(*line.samples().label);
    if (found != classes.end()) {
      selection.label = found - classes.begin();
    } else if (number.ok() && *number <= INT64_MAX &&
               (classes.empty() || *number < classes.size())) {
      selection.label = static_cast<int64_t>(*number);
    } else {
      return InvalidArgumentError(
          StrCat("--label ", EscapeForTerminal(*line.samples().label), ": there is no such class",
                 classes.empty() ? " (these shards have no names for them; give its number, or "
                                   "name the dataset's folder)"
                                 : "",
                 DidYouMean(*line.samples().label, classes)));
    }
  }
  return selection;
}

absl::Status ForEachSample(const Dataset& dataset, const Selection& selection,
                           const std::function<bool(const SampleRow&)>& visit) {
  uint64_t chosen = 0;
  const auto shards = dataset.shards();
  for (uint32_t n = 0; n < shards.size(); ++n) {
    if (!selection.split.empty() && shards[n].split != selection.split) continue;
    ASSIGN_OR_RETURN(ShardIndex index, dataset.index(n));
    for (uint64_t record = 0; record < index.records(); ++record) {
      if (selection.label.has_value() && index.label(record) != *selection.label) continue;
      if (selection.limit > 0 && chosen == selection.limit) return absl::OkStatus();
      ++chosen;
      if (!visit({shards[n].first_id + record, shards[n], index, record})) return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

}  // namespace shardpack::cli

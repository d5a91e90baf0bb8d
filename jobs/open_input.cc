#include "jobs/open_input.h"

#include <errno.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "converters/sources/labels_beside.h"
#include "formats/core/manifest.h"
#include "formats/formats.h"
#include "formats/io/exists.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/io/list_folder.h"
#include "formats/io/relative_path.h"
#include "formats/io/same_file.h"
#include "formats/io/shell_quoted.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

using absl::InvalidArgumentError;
using absl::StrCat;

// Refuses a file named twice, even by different paths.
absl::Status RefuseSameFile(std::span<const std::string> paths) {
  ASSIGN_OR_RETURN(const std::optional<NamedTwice> twice, FindSameFile(paths));
  if (!twice) return absl::OkStatus();
  const std::string &path = paths[twice->again], &first = paths[twice->first];
  return InvalidArgumentError(
      StrCat(EscapeForTerminal(path), " is given twice",
             path == first ? "" : StrCat(", also as ", EscapeForTerminal(first))));
}

// An index has the position, the label and the hash of every field, so two different shards never
// have the same index.
absl::Status RefuseCopies(const Dataset& dataset, std::span<const std::string> paths) {
  std::map<std::pair<uint64_t, uint64_t>, size_t> seen;
  for (uint32_t shard = 0; shard < dataset.shards().size(); ++shard) {
    ASSIGN_OR_RETURN(const ShardIndex index, dataset.index(shard));
    if (index.records() == 0) continue;
    const Digest digest = Xxh3_128(index.bytes());
    const auto [first, fresh] = seen.emplace(std::pair(digest.high, digest.low), shard);
    if (fresh) continue;
    return InvalidArgumentError(StrCat(EscapeForTerminal(paths[shard]), " is a copy of ",
                                       EscapeForTerminal(paths[first->second]),
                                       ": every sample would occur twice; give one of them"));
  }
  return absl::OkStatus();
}

// Checks that the shards still have the bytes that the manifests describe: else they are damaged,
// or others, and the names of the labels do not apply. All shards have been read by now.
absl::Status CheckBytes(const Dataset& dataset, const LabelsBeside& beside) {
  if (beside.expected.empty()) return absl::OkStatus();
  Manifest described;
  described.format = dataset.format();
  described.classes = beside.labels.classes;
  for (size_t i = 0; i < dataset.shards().size(); ++i) {
    const DatasetShard& shard = dataset.shards()[i];
    if (!beside.expected[i]) return absl::OkStatus();
    ManifestShard row;
    row.name = shard.name;
    row.bytes = shard.bytes;
    row.xxh3_128 = *beside.expected[i];
    described.shards.push_back(std::move(row));
  }
  if (described.Identity() == dataset.identity()) return absl::OkStatus();
  return absl::DataLossError(
      StrCat("the shards have other bytes than the manifests beside them say, so that nothing says "
             "what their labels mean. ",
             AdviceOnOtherBytes(beside.folder)));
}

// For a folder that is not a dataset: says what to type if it holds shards, else returns `why`.
absl::Status NameShardsOf(const std::string& folder, const absl::Status& why) {
  ASSIGN_OR_RETURN(std::vector<std::string> names, ListFolder(folder));
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    if (name.starts_with('.')) continue;
    const absl::StatusOr<const Format*> format = SniffFormat(StrCat(folder, "/", name));
    if (!format.ok() || *format == nullptr) continue;
    const size_t dot = name.rfind('.');
    const std::string ending =
        dot == name.npos || name.find("-of-", dot) != name.npos ? "" : name.substr(dot);
    const std::string shown = WithoutSlashes(folder);
    const std::string quoted = ShellQuoted(shown);
    return InvalidArgumentError(StrCat(
        EscapeForTerminal(shown), " is not a dataset (no manifest.json), but holds shards, ",
        EscapeForTerminal(name), " for one: name them, as in ", quoted, "/*", ending,
        ", or first make them a dataset where they lie: ", TypedProgram(), " index ", quoted));
  }
  return why;
}

}  // namespace

absl::StatusOr<InputKind> KindOfInput(std::span<const std::string> paths) {
  std::vector<std::string> datasets, shards;
  for (const std::string& path : paths) {
    struct stat facts;
    if (::stat(path.c_str(), &facts) != 0) {
      if (errno != ENOENT && errno != ENOTDIR) return IoStatus("look at", path, errno);
      return InvalidArgumentError(
          StrCat(EscapeForTerminal(path), " does not exist; name a dataset's folder, or shards"));
    }
    bool shard = !S_ISDIR(facts.st_mode);
    ASSIGN_OR_RETURN(const bool dataset, Exists(StrCat(path, "/", std::string(kManifestName))));
    if (!shard && !dataset) {  // in some formats a shard is a folder
      const absl::StatusOr<const Format*> format = SniffFormat(path);
      shard = format.ok() && *format != nullptr;
    }
    (shard ? shards : datasets).push_back(EscapeForTerminal(path));
  }
  if (datasets.empty()) return InputKind::kShards;
  if (paths.size() == 1) return InputKind::kDataset;
  if (!shards.empty()) {
    return InvalidArgumentError(StrCat(
        datasets[0], " is a folder and ", shards[0],
        " a shard; name one dataset's folder, or shards alone: those of a folder are FOLDER/*"));
  }
  return InvalidArgumentError(
      StrCat(datasets[0], " and ", datasets[1],
             datasets.size() > 2 ? StrCat(" (and ", datasets.size() - 2, " more)") : "",
             " are folders, and one dataset is taken at a time: give the command once for each"));
}

namespace {

// As `pack index` does: splits from manifests next to the shards, else from the names.
void SplitByNames(std::span<const std::string> paths, std::vector<std::string>& splits) {
  const ShardSplits told = SplitsOfShards(paths);
  const bool some = !told.splits.empty() ||
                    std::ranges::any_of(splits, [](const std::string& s) { return !s.empty(); });
  if (!some) return;
  splits.resize(paths.size());
  for (size_t i = 0; i < paths.size(); ++i) {
    if (splits[i].empty())
      splits[i] = told.splits.empty() ? std::string(kOneSplit) : told.splits[i];
  }
}

}  // namespace

ShardSplits SplitsOfShards(std::span<const std::string> paths) {
  std::vector<std::string> names;
  for (const std::string& path : paths) {
    const std::string_view whole = std::string_view(path).substr(0, path.find_last_not_of('/') + 1);
    names.emplace_back(whole.substr(whole.rfind('/') + 1));
  }
  return SplitsOfShardNames(names);
}

absl::StatusOr<Dataset> OpenInput(std::span<const std::string> paths, bool same_labels,
                                  std::string* doubt) {
  ASSIGN_OR_RETURN(const InputKind kind, KindOfInput(paths));
  if (kind == InputKind::kDataset) {
    absl::StatusOr<Dataset> dataset = Dataset::Open(paths[0], AllFormats());
    return absl::IsInvalidArgument(dataset.status()) ? NameShardsOf(paths[0], dataset.status())
                                                     : dataset;
  }
  absl::Status once = RefuseSameFile(paths);
  if (!once.ok()) return once;
  absl::StatusOr<LabelsBeside> beside = LabelsBesideShards(paths);
  const bool doubtful =
      absl::IsInvalidArgument(beside.status()) || absl::IsDataLoss(beside.status());
  if (!beside.ok() && (same_labels || !doubtful)) return beside.status();
  const auto say = [doubt](const absl::Status& why) {
    if (doubt != nullptr) *doubt = std::string(why.message());
  };
  if (!beside.ok()) say(beside.status());
  ForeignLabels labels = beside.ok() ? beside->labels : ForeignLabels{};
  SplitByNames(paths, labels.splits);
  absl::StatusOr<Dataset> dataset = Dataset::OpenShards(paths, AllFormats(), labels);
  if (!dataset.ok()) return dataset;
  const absl::Status same = beside.ok() ? CheckBytes(*dataset, *beside) : absl::OkStatus();
  if (!same_labels && !same.ok()) {
    say(same);
    labels.classes.clear();
    return Dataset::OpenShards(paths, AllFormats(), labels);
  }
  if (!same_labels) return dataset;
  if (!same.ok()) return same;
  once = RefuseCopies(*dataset, paths);
  return once.ok() ? dataset : once;
}

}  // namespace shardpack

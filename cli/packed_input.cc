#include "cli/packed_input.h"

#include <errno.h>
#include <sys/stat.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cli/suggest.h"
#include "cli/units.h"
#include "converters/labels_beside.h"
#include "formats/core/manifest.h"
#include "formats/formats.h"
#include "formats/io/exists.h"
#include "formats/io/file.h"
#include "images/probe.h"

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
    const absl::StatusOr<bool> dataset = Exists(StrCat(path, "/", std::string(kManifestName)));
    if (!dataset.ok()) return dataset.status();
    if (!shard && !*dataset) {  // of some formats a shard is a folder
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

absl::StatusOr<Dataset> OpenInput(std::span<const std::string> paths, bool same_labels) {
  const absl::StatusOr<InputKind> kind = KindOfInput(paths);
  if (!kind.ok()) return kind.status();
  if (*kind == InputKind::kDataset) return Dataset::Open(paths[0], AllFormats());
  absl::StatusOr<ForeignLabels> labels = LabelsBesideShards(paths);
  if (!labels.ok() && same_labels) return labels.status();
  return Dataset::OpenShards(paths, AllFormats(), labels.ok() ? *labels : ForeignLabels{});
}

absl::StatusOr<Selection> Selection::Make(const Dataset& dataset, const CommandLine& line) {
  Selection selection;
  selection.limit = line.limit;
  if (!line.split.empty()) {
    const std::vector<std::string> names = SplitNames(dataset);
    if (std::find(names.begin(), names.end(), line.split) == names.end()) {
      std::string known;
      for (const std::string& name : names)
        absl::StrAppend(&known, known.empty() ? "" : ", ", name);
      return InvalidArgumentError(
          StrCat("--split ", EscapeForTerminal(line.split), ": there is no such split, only ",
                 known.empty() ? "one without a name" : known, DidYouMean(line.split, names)));
    }
    selection.split = line.split;
  }
  if (line.label.has_value()) {
    const auto classes = dataset.classes();
    const auto found = std::find(classes.begin(), classes.end(), *line.label);
    const absl::StatusOr<uint64_t> number = ParseCount(*line.label);
    if (found != classes.end()) {
      selection.label = found - classes.begin();
    } else if (number.ok() && *number <= INT64_MAX &&
               (classes.empty() || *number < classes.size())) {
      selection.label = static_cast<int64_t>(*number);
    } else {
      return InvalidArgumentError(
          StrCat("--label ", EscapeForTerminal(*line.label), ": there is no such class",
                 classes.empty() ? " (these shards have no names for them; give its number, or name the dataset's folder)" : "",
                 DidYouMean(*line.label, classes)));
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
    absl::StatusOr<ShardIndex> index = dataset.index(n);
    if (!index.ok()) return index.status();
    for (uint64_t record = 0; record < index->records(); ++record) {
      if (selection.label.has_value() && index->label(record) != *selection.label) continue;
      if (selection.limit > 0 && chosen == selection.limit) return absl::OkStatus();
      ++chosen;
      if (!visit({shards[n].first_id + record, shards[n], *index, record})) return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

std::string ClassName(const Dataset& dataset, int64_t label) {
  if (label < 0) return "";
  const auto classes = dataset.classes();
  if (static_cast<uint64_t>(label) < classes.size()) return classes[static_cast<size_t>(label)];
  return StrCat(label);
}

absl::StatusOr<ImageInfo> ImageOf(const Dataset& dataset, const SampleRow& row) {
  const ImageInfo known = row.index.image(row.record);
  if (known.format != ImageFormat::kUnknown) return known;
  const absl::StatusOr<OwnedSample> sample = dataset.Read(row.id);
  if (!sample.ok() && !IsAboutThePath(sample.status())) return sample.status();
  if (!sample.ok()) return known;  // a damaged sample
  for (const OwnedSample::Field& field : sample->fields) {
    if (field.name == kImageField) return ImageOf(row, AsBytes(field.bytes));
  }
  return known;
}

ImageInfo ImageOf(const SampleRow& row, Bytes image) {
  const ImageInfo known = row.index.image(row.record);
  if (known.format != ImageFormat::kUnknown) return known;
  ProbeOptions options;
  options.level = ProbeLevel::kHeader;
  options.max_pixels = UINT64_MAX;
  return ProbeImage(image, options).info;
}

}  // namespace shardpack::cli

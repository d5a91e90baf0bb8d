#include "converters/sources/labels_beside.h"

#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "converters/sources/damaged_manifest.h"
#include "formats/core/manifest.h"
#include "formats/core/manifests_beside.h"
#include "formats/io/file.h"
#include "formats/io/shell_quoted.h"
#include "formats/io/status_macros.h"
#include "readers/dataset/class_difference.h"

namespace shardpack {
namespace {

// A manifest that cannot be read.
absl::Status UnknownLabels(const ManifestsBeside::Found& found) {
  if (!absl::IsDataLoss(found.status)) return DamagedManifest(found.folder, found.status);
  return DamagedManifest(found.folder,
                         absl::DataLossError(absl::StrCat(
                             std::string(found.status.message()),
                             ", so the meaning of the labels of the shards beside it is unknown")));
}

absl::Status OtherBytes(const std::string& path, const std::string& folder, std::string_view what) {
  return absl::DataLossError(absl::StrCat(EscapeForTerminal(path), " ", std::string(what),
                                          ", so the meaning of its labels is unknown. ",
                                          AdviceOnOtherBytes(folder)));
}

// A shard of another size is a different shard, whatever its name.
absl::Status CheckSize(const std::string& path, const ManifestsBeside::Found& found) {
  std::error_code error;
  const std::string data = PathInDataset(found.folder, found.manifest->DataFileOf(*found.shard));
  const uintmax_t bytes = std::filesystem::file_size(data, error);
  if (error) return IoStatus("look at", data, error.value());
  if (bytes == found.shard->bytes) return absl::OkStatus();
  return OtherBytes(path, found.folder,
                    absl::StrCat("has ", bytes, " bytes, but ", found.shard->bytes,
                                 " by the manifest in ", EscapeForTerminal(found.folder)));
}

std::string Difference(const ManifestsBeside::Found& a, const ManifestsBeside::Found& b) {
  return FirstClassDifference(
      a.manifest->classes, absl::StrCat(" in ", EscapeForTerminal(a.folder)), b.manifest->classes,
      absl::StrCat(" in ", EscapeForTerminal(b.folder)));
}

}  // namespace

absl::StatusOr<LabelsBeside> LabelsBesideShards(std::span<const std::string> paths) {
  ManifestsBeside manifests;
  std::optional<ManifestsBeside::Found> first;
  const std::string* unknown = nullptr;
  LabelsBeside beside;
  ForeignLabels& labels = beside.labels;
  for (const std::string& shard : paths) {
    const ManifestsBeside::Found found = manifests.Find(shard);
    if (!found.status.ok()) return UnknownLabels(found);
    labels.splits.push_back(found.shard == nullptr ? "" : found.shard->split);
    beside.expected.emplace_back();
    if (found.manifest == nullptr) {
      unknown = &shard;
      continue;
    }
    if (!found.manifest->classes.empty()) {
      RETURN_IF_ERROR(CheckSize(shard, found));
    }
    beside.expected.back() = found.shard->xxh3_128;
    if (!first) first = found;
    if (found.manifest->classes == first->manifest->classes) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the shards are of datasets whose labels mean different things: ",
        Difference(*first, found),
        ". Take one dataset at a time; to make one of both by the names of their classes, where "
        "the folders of their files are the classes, pack extract each, put the files into one "
        "folder, and pack that"));
  }
  if (!first) return LabelsBeside{};
  labels.classes = first->manifest->classes;
  beside.folder = first->folder;
  if (unknown != nullptr && !labels.classes.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "nothing beside ", EscapeForTerminal(*unknown), " says what its labels mean, where ",
        EscapeForTerminal(first->folder),
        "/manifest.json names the classes of other shards. Take one dataset at a time, or first "
        "name the classes of these with pack index and --classes FILE"));
  }
  return beside;
}

std::string AdviceOnOtherBytes(const std::string& folder) {
  return absl::StrCat("To see which of the dataset's files are damaged:\n  ", TypedProgram(),
                      " validate ", ShellQuoted(folder),
                      "\nTo name the classes of the shards as they are (SHARDS), in a new folder "
                      "(OTHER), from a file with the name of one class per line (FILE):\n  ",
                      TypedProgram(), " index SHARDS -o OTHER --classes FILE");
}

absl::Status CheckShardBeside(const LabelsBeside& beside, size_t shard, const std::string& path,
                              const Digest& is) {
  const bool known = !beside.labels.classes.empty() && shard < beside.expected.size() &&
                     beside.expected[shard].has_value();
  if (!known || *beside.expected[shard] == is) return absl::OkStatus();
  return OtherBytes(path, beside.folder, "has other bytes than the manifest beside it says");
}

}  // namespace shardpack

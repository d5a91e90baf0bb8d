#include "converters/sources/labels_beside.h"

#include <filesystem>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "converters/sources/damaged_manifest.h"
#include "formats/core/dataset_parts.h"
#include "formats/core/manifest.h"
#include "formats/io/file.h"
#include "formats/io/list_folder.h"
#include "formats/io/status_macros.h"
#include "readers/dataset/class_difference.h"

namespace shardpack {
namespace {

using std::filesystem::path;

// A manifest, and the paths of its shards.
struct Beside {
  Manifest manifest;
  std::map<path, size_t> shards;  // absolute
};

path Resolved(const std::string& name) {
  std::error_code error;
  const path resolved = std::filesystem::canonical(name, error);
  return error ? std::filesystem::absolute(name, error).lexically_normal() : resolved;
}

// nullopt if there is no manifest of ours.
absl::StatusOr<std::optional<Beside>> ReadBeside(const path& folder) {
  absl::StatusOr<Manifest> manifest = Manifest::Read(folder.string());
  if (absl::IsNotFound(manifest.status())) return std::nullopt;
  if (absl::IsDataLoss(manifest.status())) {
    // Without an index made by pack beside it, it may belong to another program.
    if (DefectOf(manifest.status()) == ManifestDefect::kOther) {
      ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(folder.string()));
      if (!HasIndex(names)) return std::nullopt;
    }
    const std::string why =
        absl::StrCat(std::string(manifest.status().message()),
                     ", so the meaning of the labels of the shards beside it is unknown");
    return DamagedManifest(folder.string(), absl::DataLossError(why));
  }
  if (!manifest.ok()) return DamagedManifest(folder.string(), manifest.status());
  Beside beside{*std::move(manifest), {}};
  for (size_t i = 0; i < beside.manifest.shards.size(); ++i) {
    const ManifestShard& shard = beside.manifest.shards[i];
    for (const std::string& name : {shard.name, beside.manifest.DataFileOf(shard)})
      beside.shards[Resolved(PathInDataset(folder.string(), name))] = i;
  }
  return beside;
}

// The manifests of all folders that hold shards, each read once.
class Manifests {
 public:
  struct Found {
    const Beside* manifest = nullptr;  // nullptr: no manifest lists the shard
    const ManifestShard* shard = nullptr;
    path folder;
  };

  absl::StatusOr<Found> Find(const std::string& shard) {
    const path file = Resolved(shard);
    // A shard may be a folder, given by the file in it.
    const path parent = file.parent_path();
    for (const path& folder : {parent, parent.parent_path()}) {
      auto known = read_.find(folder);
      if (known == read_.end()) {
        ASSIGN_OR_RETURN(std::optional<Beside> beside, ReadBeside(folder));
        known = read_.emplace(folder, std::move(beside)).first;
      }
      if (!known->second) continue;
      const auto row = known->second->shards.find(file);
      if (row == known->second->shards.end()) continue;
      return Found{&*known->second, &known->second->manifest.shards[row->second], folder};
    }
    return Found{};
  }

 private:
  std::map<path, std::optional<Beside>> read_;
};

absl::Status OtherBytes(const std::string& path, std::string_view what) {
  return absl::DataLossError(
      absl::StrCat(EscapeForTerminal(path), " ", std::string(what),
                   ", so the meaning of its labels is unknown. pack validate tells about "
                   "the dataset; to name the classes of the shard as it is, use pack index with "
                   "--classes FILE"));
}

// A shard of another size is a different shard, whatever its name.
absl::Status CheckSize(const std::string& path, const Manifests::Found& found) {
  std::error_code error;
  const std::string data =
      PathInDataset(found.folder.string(), found.manifest->manifest.DataFileOf(*found.shard));
  const uintmax_t bytes = std::filesystem::file_size(data, error);
  if (error) return IoStatus("look at", data, error.value());
  if (bytes == found.shard->bytes) return absl::OkStatus();
  return OtherBytes(
      path, absl::StrCat("has ", bytes, " bytes, but ", found.shard->bytes, " by the manifest in ",
                         EscapeForTerminal(found.folder.string())));
}

std::string Difference(const Manifests::Found& a, const Manifests::Found& b) {
  return FirstClassDifference(
      a.manifest->manifest.classes, absl::StrCat(" in ", EscapeForTerminal(a.folder.string())),
      b.manifest->manifest.classes, absl::StrCat(" in ", EscapeForTerminal(b.folder.string())));
}

}  // namespace

absl::StatusOr<LabelsBeside> LabelsBesideShards(std::span<const std::string> paths) {
  Manifests manifests;
  std::optional<Manifests::Found> first;
  const std::string* unknown = nullptr;
  LabelsBeside beside;
  ForeignLabels& labels = beside.labels;
  for (const std::string& shard : paths) {
    ASSIGN_OR_RETURN(const Manifests::Found found, manifests.Find(shard));
    labels.splits.push_back(found.shard == nullptr ? "" : found.shard->split);
    beside.expected.emplace_back();
    if (found.manifest == nullptr) {
      unknown = &shard;
      continue;
    }
    if (!found.manifest->manifest.classes.empty()) {
      RETURN_IF_ERROR(CheckSize(shard, found));
      beside.expected.back() = found.shard->xxh3_128;
    }
    if (!first) first = found;
    if (found.manifest->manifest.classes == first->manifest->manifest.classes) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the shards are of datasets whose labels mean different things: ",
        Difference(*first, found),
        ". Take one dataset at a time; to make one of both by the names of their classes, where "
        "the folders of their files are the classes, pack extract each, put the files into one "
        "folder, and pack that"));
  }
  if (!first) return LabelsBeside{};
  labels.classes = first->manifest->manifest.classes;
  if (unknown != nullptr && !labels.classes.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "nothing beside ", EscapeForTerminal(*unknown), " says what its labels mean, where ",
        EscapeForTerminal(first->folder.string()),
        "/manifest.json names the classes of other shards. Take one dataset at a time, or first "
        "name the classes of these with pack index and --classes FILE"));
  }
  return beside;
}

absl::Status CheckShardBeside(const LabelsBeside& beside, size_t shard, const std::string& path,
                              const Digest& is) {
  if (shard >= beside.expected.size() || !beside.expected[shard] || *beside.expected[shard] == is)
    return absl::OkStatus();
  return OtherBytes(path, "has other bytes than the manifest beside it says");
}

}  // namespace shardpack

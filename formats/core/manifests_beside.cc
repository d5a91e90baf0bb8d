#include "formats/core/manifests_beside.h"

#include <optional>
#include <utility>
#include <vector>

#include "formats/core/dataset_parts.h"
#include "formats/io/list_folder.h"

namespace shardpack {
namespace {

using std::filesystem::path;

path Resolved(const std::string& name) {
  std::error_code error;
  const path resolved = std::filesystem::canonical(name, error);
  return error ? std::filesystem::absolute(name, error).lexically_normal() : resolved;
}

// Without an index made by pack beside it, what is no manifest may belong to another program.
bool MayBeAnothers(const path& folder, const absl::Status& status) {
  if (!absl::IsDataLoss(status) || DefectOf(status) != ManifestDefect::kOther) return false;
  const absl::StatusOr<std::vector<std::string>> names = ListFolder(folder.string());
  return names.ok() && !HasIndex(*names);
}

}  // namespace

ManifestsBeside::Beside ManifestsBeside::Read(const path& folder) {
  absl::StatusOr<Manifest> manifest = Manifest::Read(folder.string());
  Beside beside;
  if (!manifest.ok()) {
    const bool none =
        absl::IsNotFound(manifest.status()) || MayBeAnothers(folder, manifest.status());
    if (!none) beside.status = manifest.status();
    return beside;
  }
  beside.manifest = *std::move(manifest);
  for (size_t i = 0; i < beside.manifest.shards.size(); ++i) {
    const ManifestShard& shard = beside.manifest.shards[i];
    for (const std::string& name : {shard.name, beside.manifest.DataFileOf(shard)})
      beside.shards[Resolved(PathInDataset(folder.string(), name))] = i;
  }
  return beside;
}

ManifestsBeside::Found ManifestsBeside::Find(const std::string& shard) {
  const path file = Resolved(shard);
  const path parent = file.parent_path();
  for (const path& folder : {parent, parent.parent_path()}) {
    auto known = read_.find(folder);
    if (known == read_.end()) known = read_.emplace(folder, Read(folder)).first;
    const Beside& beside = known->second;
    if (!beside.status.ok()) return {beside.status, folder.string()};
    const auto row = beside.shards.find(file);
    if (row == beside.shards.end()) continue;
    return {absl::OkStatus(), folder.string(), &beside.manifest,
            &beside.manifest.shards[row->second]};
  }
  return {};
}

}  // namespace shardpack

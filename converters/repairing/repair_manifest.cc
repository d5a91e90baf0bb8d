// Restores a damaged or missing manifest from a copy.
#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "converters/publishing/file_damage.h"
#include "converters/publishing/manifest_text.h"
#include "converters/repairing/file_look.h"
#include "converters/repairing/repair.h"
#include "converters/repairing/repair_folder.h"
#include "formats/core/shard_index.h"
#include "formats/io/exists.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/io/lack_of_resources.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

absl::Status Refuse(const std::string& path, const std::string& why) {
  return absl::FailedPreconditionError(absl::StrCat(EscapeForTerminal(path), " ", why));
}

// Only the remains of our manifest, or a file of the dataset that ended up there, may be replaced.
absl::Status CheckPlaces(const std::string& out, const Manifest& manifest) {
  ASSIGN_OR_RETURN(const bool ours, HoldsManifest(out));
  const std::string path = absl::StrCat(out, "/", std::string(kManifestName));
  if (ours) {
    const absl::StatusOr<Manifest> now = Manifest::Read(out);
    if (now.ok()) return Refuse(path, "is whole: another run has put it there; run again");
    return absl::IsDataLoss(now.status()) ? absl::OkStatus() : absl::Status(now.status());
  }
  const absl::StatusOr<bool> there = Exists(path);
  if (!there.ok() || !*there) return there.status();
  for (const FileEntry& file : manifest.files) {
    ASSIGN_OR_RETURN(const std::string damage, DamageOf(path, file, true, nullptr));
    if (damage.empty()) return absl::OkStatus();
  }
  return Refuse(path, "was not written by pack, so it is not replaced; move it away and run again");
}

std::string DataPathOf(const std::string& out, const Manifest& manifest,
                       const ManifestShard& shard) {
  return PathInDataset(out, manifest.DataFileOf(shard));
}

// Whether the index beside a shard of OUT is intact and made for a file of that size, while neither
// index nor shard belongs to the manifest's dataset: then files of another dataset would be
// replaced, not a damaged shard of this one. `indexes`: those of the manifest, because files may
// have been swapped.
absl::StatusOr<bool> IsOfAnotherDataset(const std::string& out, const Manifest& manifest,
                                        const ManifestShard& shard,
                                        const std::set<Digest>& indexes) {
  const std::string path = DataPathOf(out, manifest, shard);
  struct stat facts;
  if (::stat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return false;
  const absl::StatusOr<ShardIndex> index =
      ShardIndex::Open(PathInDataset(out, shard.index.name), static_cast<uint64_t>(facts.st_size));
  if (IsLackOfResources(index.status())) return index.status();
  if (!index.ok() || indexes.contains(Xxh3_128(index->bytes()))) return false;
  ASSIGN_OR_RETURN(const std::string damage, DamageOf(path, {path, shard.bytes, shard.xxh3_128},
                                                      true, nullptr, Unreadable::kIsDamage));
  return !damage.empty();
}

// Checks the copy's manifest for signs that OUT is another dataset.
absl::Status CheckMayBeCopy(const std::string& out, const std::string& copy,
                            const Manifest& manifest, const std::optional<Digest>& expect) {
  if (expect && *expect != manifest.Identity()) {
    return Refuse(copy, absl::StrCat("is dataset ", IdentityText(manifest.Identity()),
                                     ", --expect says ", IdentityText(*expect)));
  }
  std::set<Digest> indexes;
  for (const ManifestShard& shard : manifest.shards) {
    // Relative locations of shards would mean something else here.
    if (!shard.location.empty())
      return Refuse(
          copy, "has shards outside of its folder: it is an index, which pack index makes again");
    indexes.insert(shard.index.xxh3_128);
  }
  for (const ManifestShard& shard : manifest.shards) {
    ASSIGN_OR_RETURN(const bool another, IsOfAnotherDataset(out, manifest, shard, indexes));
    if (!another) continue;
    return Refuse(copy, absl::StrCat("is another dataset: the index of ",
                                     EscapeForTerminal(DataPathOf(out, manifest, shard)),
                                     " is whole, fits it, and is not one of that dataset's. Should "
                                     "only this shard be there by mistake, move it and its index "
                                     "away and run again"));
  }
  return absl::OkStatus();
}

// The files of all shards, after comparing every byte.
absl::StatusOr<std::set<std::string>> CheckShards(const std::string& out, const std::string& copy,
                                                  const Manifest& manifest,
                                                  const RepairOptions& options,
                                                  RepairProgress& progress,
                                                  const std::atomic<int>& stop) {
  std::set<std::string> whole;
  std::vector<FileLook> looks;
  for (const ManifestShard& shard : manifest.shards) {
    const std::string file = manifest.DataFileOf(shard);
    whole.insert(file);
    looks.push_back({PathInDataset(out, file), {file, shard.bytes, shard.xxh3_128}, false});
  }
  progress.total_files = looks.size();
  // Sizes reveal most differences.
  for (const bool full : {false, true}) {
    progress.done_files = 0;
    for (FileLook& look : looks) {
      look.full = full;
      progress.total_bytes += full ? look.file.bytes : 0;
    }
    RETURN_IF_ERROR(LookAtFiles(looks, Unreadable::kIsError, options.jobs, progress, stop));
    for (const FileLook& look : looks) {
      if (look.damage.empty()) continue;
      return Refuse(copy,
                    absl::StrCat("may be another dataset: ", EscapeForTerminal(look.file.name),
                                 " is not the same here (", look.damage, "). Only if ",
                                 EscapeForTerminal(out),
                                 " was that very dataset before it was damaged, add --expect ",
                                 IdentityText(manifest.Identity())));
    }
  }
  return whole;
}

}  // namespace

absl::StatusOr<bool> HoldsManifest(const std::string& folder) {
  const absl::StatusOr<std::string> text =
      ReadWholeFile(absl::StrCat(folder, "/", std::string(kManifestName)), kMaxManifestBytes);
  if (absl::IsNotFound(text.status()) || absl::IsOutOfRange(text.status())) return false;
  if (!text.ok()) return text.status();
  return IsManifestText(*text);
}

absl::StatusOr<RestoredManifest> RestoreManifest(const std::string& out, const std::string& copy,
                                                 const std::optional<Digest>& expect,
                                                 const RepairOptions& options,
                                                 RepairProgress& progress,
                                                 const std::atomic<int>& stop) {
  const std::string name(kManifestName);
  ASSIGN_OR_RETURN(const std::string text,
                   ReadWholeFile(absl::StrCat(copy, "/", name), kMaxManifestBytes));
  ASSIGN_OR_RETURN(Manifest manifest, Manifest::Parse(text));
  // Check before writing to a folder that is not a dataset's; the notes and the manifest's path are
  // checked again under the lock.
  RETURN_IF_ERROR(CheckNothingUnfinished(out));
  RETURN_IF_ERROR(CheckPlaces(out, manifest));
  RETURN_IF_ERROR(CheckMayBeCopy(out, copy, manifest, expect));
  std::set<std::string> whole;
  if (!expect) {
    ASSIGN_OR_RETURN(whole, CheckShards(out, copy, manifest, options, progress, stop));
  }
  if (options.dry_run) return RestoredManifest{std::move(manifest), std::move(whole)};
  ASSIGN_OR_RETURN(RepairFolder folder, RepairFolder::Open(out, options.fsync));
  RETURN_IF_ERROR(CheckPlaces(out, manifest));
  RETURN_IF_ERROR(folder.Stage(name, text));
  ASSIGN_OR_RETURN(const std::string damage,
                   folder.Publish(name, {name, text.size(), Xxh3_128(AsBytes(text))}));
  if (!damage.empty()) {
    return absl::UnavailableError(
        absl::StrCat("write ", EscapeForTerminal(out), "/", name, ": ", damage));
  }
  RETURN_IF_ERROR(folder.Close());
  return RestoredManifest{std::move(manifest), std::move(whole)};
}

}  // namespace shardpack

#include "converters/repairing/repair.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "converters/publishing/output_dir.h"
#include "converters/repairing/file_look.h"
#include "converters/repairing/repair_work.h"
#include "formats/io/exists.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/io/lack_of_resources.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

// Every file of the dataset, or those named by `only`.
absl::StatusOr<std::vector<RepairTarget>> ListTargets(const Manifest& manifest,
                                                      const std::vector<std::string>& only) {
  std::map<std::string_view, std::pair<RepairTarget::Kind, uint32_t>> known;
  std::vector<RepairTarget> targets;
  std::set<std::string> wanted(only.begin(), only.end()), unknown = wanted;
  for (uint32_t n = 0; n < manifest.shards.size(); ++n) {
    const ManifestShard& shard = manifest.shards[n];
    const std::string file = manifest.DataFileOf(shard);
    if (unknown.erase(shard.name) > 0) wanted.insert({file, shard.index.name});
    known[shard.index.name] = {RepairTarget::Kind::kIndex, n};
    if (shard.location.empty()) continue;
    targets.push_back({.file = {file, shard.bytes, shard.xxh3_128},
                       .kind = RepairTarget::Kind::kShard,
                       .shard = n,
                       .outside = true});
  }
  std::map<std::string, uint32_t> shard_files;
  for (uint32_t n = 0; n < manifest.shards.size(); ++n)
    shard_files[manifest.DataFileOf(manifest.shards[n])] = n;
  for (const FileEntry& file : manifest.files) {
    RepairTarget target{.file = file};
    if (const auto index = known.find(file.name); index != known.end()) {
      std::tie(target.kind, target.shard) = index->second;
    } else if (const auto shard = shard_files.find(file.name); shard != shard_files.end()) {
      target.kind = RepairTarget::Kind::kShard;
      target.shard = shard->second;
    }
    targets.push_back(std::move(target));
  }
  for (const RepairTarget& target : targets) unknown.erase(target.file.name);
  if (!unknown.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", EscapeForTerminal(*unknown.begin()),
                     "\" is not a shard or file of this dataset; pack info lists them"));
  }
  if (!only.empty())
    std::erase_if(targets, [&](const RepairTarget& t) { return !wanted.contains(t.file.name); });
  return targets;
}

bool ReadsAllOf(const RepairOptions& options, const RepairTarget& target) {
  return options.full && !options.whole.contains(target.file.name);
}

absl::Status Look(RepairWork& work, std::span<RepairTarget> targets) {
  std::vector<FileLook> looks;
  for (const RepairTarget& target : targets) {
    looks.push_back(
        {work.own.PathOf(target.file.name), target.file, ReadsAllOf(work.options, target)});
  }
  RETURN_IF_ERROR(
      LookAtFiles(looks, Unreadable::kIsDamage, work.options.jobs, work.progress, work.stop));
  for (size_t i = 0; i < looks.size(); ++i) targets[i].damage = std::move(looks[i].damage);
  return absl::OkStatus();
}

// Checks again under the lock, because another run may have changed files.
absl::Status LookAgain(RepairWork& work) {
  std::vector<RepairTarget> lost;
  for (const RepairTarget* target : work.Lost()) lost.push_back(*target);
  work.progress.damaged = 0;
  absl::Status status = Look(work, lost);
  if (!status.ok()) return status;
  size_t next = 0;
  for (RepairTarget* target : work.Lost()) *target = lost[next++];
  return status;
}

// The identity in the folder's manifest; nullopt if there is none to read.
std::optional<Digest> PublishedIdentity(const std::string& out) {
  const absl::StatusOr<Manifest> manifest = Manifest::Read(out);
  return manifest.ok() ? std::optional(manifest->Identity()) : std::nullopt;
}

absl::Status RebuildAll(RepairWork& work) {
  for (RepairTarget* target : work.Lost()) {
    if (target->outside)
      target->why_not = {
          "it lies outside of the dataset's folder, where nothing is written; restore it"};
  }
  for (const auto way : {TakeWholeFiles, TakeLooseFiles, RebuildIndexesOfShardsInPlace,
                         RebuildByIndex, RebuildByCopies, RebuildByPlan, RebuildOtherFiles}) {
    if (work.Lost().empty()) break;
    RETURN_IF_ERROR(work.CheckStop());
    RETURN_IF_ERROR(way(work));
  }
  return absl::OkStatus();
}

RepairReport ReportOf(const RepairWork& work) {
  RepairReport report;
  report.looked_at = work.targets.size();
  report.hashed_bytes = work.progress.done_bytes;
  report.notice = work.notice;
  for (const RepairTarget& target : work.targets) {
    if (target.damage.empty()) continue;
    report.files.push_back({target.file.name, target.file.bytes, target.damage, target.from,
                            target.from.empty() ? absl::StrJoin(target.why_not, "; ") : ""});
    RepairedFile& file = report.files.back();
    if (!file.whole() && file.why_not.empty())
      file.why_not = "no source has what it takes; name one with --from";
  }
  return report;
}

}  // namespace

bool IsOfOneFile(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsDataLoss(status) || absl::IsInvalidArgument(status) ||
         absl::IsFailedPrecondition(status) || absl::IsUnimplemented(status) ||
         absl::IsOutOfRange(status);
}

bool EndsTheRun(const absl::Status& status) {
  return absl::IsCancelled(status) || IsLackOfResources(status);
}

std::vector<RepairTarget*> RepairWork::Lost() {
  std::vector<RepairTarget*> lost;
  for (RepairTarget& target : targets) {
    if (target.lost()) lost.push_back(&target);
  }
  return lost;
}

RepairTarget* RepairWork::LostOf(RepairTarget::Kind kind, uint32_t shard) {
  RepairTarget* const target = of_shard[shard][kind == RepairTarget::Kind::kIndex ? 1 : 0];
  return target != nullptr && target->lost() ? target : nullptr;
}

void RepairWork::Number() {
  of_shard.assign(manifest.shards.size(), {});
  for (RepairTarget& target : targets) {
    if (target.kind == RepairTarget::Kind::kOther) continue;
    of_shard[target.shard][target.kind == RepairTarget::Kind::kIndex ? 1 : 0] = &target;
  }
  uint64_t first = 0;
  for (const ManifestShard& row : manifest.shards) {
    first_numbers.push_back(first);
    const auto planned = row.planned.find(std::string(kPlannedRecords));
    first += planned == row.planned.end() ? row.records : planned->second;
  }
}

absl::StatusOr<const ShardIndex*> RepairWork::OwnIndex(uint32_t shard) const {
  absl::StatusOr<const ShardIndex*> index = own.index(shard);
  if (index.ok() || EndsTheRun(index.status())) return index;
  return nullptr;
}

absl::Status RepairWork::CheckStop() const {
  return stop.load() == 0 ? absl::OkStatus() : absl::CancelledError("stopped");
}

bool RepairWork::made_json() const { return Option("with-json") == "on"; }

ShardSpec RepairWork::SpecOf(uint32_t shard) const {
  return {.layout = layout.name,
          .image_field = manifest.options.contains("image-field")
                             ? std::string_view(manifest.options.at("image-field"))
                             : std::string_view(),
          .with_metadata = made_json(),
          .split = manifest.shards[shard].split,
          .classes = manifest.classes};
}

absl::Status RepairWork::Publish(RepairTarget& target, const std::string& staged_name,
                                 const std::string& from) {
  if (!options.dry_run) {
    const absl::StatusOr<std::string> damage =
        folder->Publish(staged_name, target.file, [this](uint64_t) { return CheckStop(); });
    if (!damage.ok() && !IsOfOneFile(damage.status())) return damage.status();
    if (!damage.ok() || !damage->empty()) {
      target.why_not.insert(
          damage.ok() ? absl::StrCat("what ", from, " gives is not what was packed: ", *damage)
                      : std::string(damage.status().message()));
      return absl::OkStatus();
    }
    if (target.kind != RepairTarget::Kind::kOther) own.Forget(target.shard);
  }
  target.from = from;
  ++progress.repaired;
  return absl::OkStatus();
}

absl::Status RepairWork::PublishBytes(RepairTarget& target, std::string_view bytes,
                                      const std::string& from) {
  if (bytes.size() != target.file.bytes || Xxh3_128(AsBytes(bytes)) != target.file.xxh3_128) {
    target.why_not.insert(absl::StrCat("what ", from, " gives is not what was packed"));
    return absl::OkStatus();
  }
  const std::string name(kStagedName);
  absl::Status staged = options.dry_run ? absl::OkStatus() : folder->Stage(name, bytes);
  return staged.ok() ? Publish(target, name, from) : staged;
}

absl::StatusOr<RepairReport> RepairDataset(const std::string& out, const Manifest& manifest,
                                           std::span<RepairSource> sources, const Format& format,
                                           const RepairOptions& options, IoPool& pool,
                                           RepairProgress& progress, const std::atomic<int>& stop) {
  ASSIGN_OR_RETURN(std::vector<RepairTarget> targets, ListTargets(manifest, options.only));
  const LayoutSpec* layout = FindLayout(format, manifest.layout);
  if (layout == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("the layout ", EscapeForTerminal(manifest.layout), " of ",
                     EscapeForTerminal(out), " is not one of this version of pack"));
  }
  RepairWork work{out,
                  manifest,
                  sources,
                  format,
                  *layout,
                  options,
                  pool,
                  progress,
                  stop,
                  DatasetCopy(out, manifest),
                  std::move(targets),
                  std::nullopt};
  work.Number();
  progress.done_files = 0;
  progress.damaged = 0;
  progress.total_files = work.targets.size();
  for (const RepairTarget& target : work.targets)
    progress.total_bytes += ReadsAllOf(options, target) ? target.file.bytes : 0;
  const std::optional<Digest> before = PublishedIdentity(out);
  absl::Status status = Look(work, work.targets);
  if (!status.ok()) return status;
  ASSIGN_OR_RETURN(const bool leftover, Exists(out + "/.pack"));
  if (!options.dry_run && (!work.Lost().empty() || (leftover && options.only.empty()))) {
    // First finish what a commit or an --overwrite has left to do: its notes are in .pack.
    ASSIGN_OR_RETURN(work.notice, OutputDir::FinishPublished(out));
    ASSIGN_OR_RETURN(RepairFolder folder, RepairFolder::Open(out, options.fsync));
    work.folder.emplace(std::move(folder));
    if (PublishedIdentity(out) != before) {
      return absl::FailedPreconditionError(
          absl::StrCat(EscapeForTerminal(out),
                       " was replaced while it was looked at; nothing was changed, run again"));
    }
    status = LookAgain(work);
    if (!status.ok()) return status;
  }
  status = RebuildAll(work);
  if (status.ok() && work.folder) status = work.folder->Close();
  if (!status.ok()) return status;
  return ReportOf(work);
}

}  // namespace shardpack

// OutputDir, second part: puts files into the folder, and ends a commit.

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "converters/publishing/conflict.h"
#include "converters/publishing/exchange.h"
#include "converters/publishing/live_workers.h"
#include "converters/publishing/output_dir.h"
#include "converters/publishing/owned_folder.h"
#include "converters/publishing/pack_folder.h"
#include "converters/publishing/pack_lock.h"
#include "converters/publishing/pack_names.h"
#include "converters/publishing/replacement.h"
#include "converters/publishing/shard_results.h"
#include "converters/publishing/staged_writes.h"
#include "formats/io/exists.h"
#include "formats/io/file.h"
#include "formats/io/sequential_reader.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr int kMaxLockWaits = 100;
constexpr std::chrono::milliseconds kLockPause{20};

}  // namespace

absl::StatusOr<std::unique_ptr<StagedFile>> OutputDir::Stage(const std::string& name) const {
  return stage_->Stage(name);
}

absl::StatusOr<std::unique_ptr<StagedFile>> OutputDir::StageWhole(std::string_view name,
                                                                  std::string_view bytes) const {
  return stage_->StageWhole(name, bytes, options_.fsync);
}

// Whether a worker may replace this file: its shard was named, and it has not changed since.
bool OutputDir::WasThere(const std::string& name) const {
  return options_.worker->named && replaceable_->IsAsNoted(name).value_or(false);
}

// Equal workers make equal bytes: this file is damaged, or the workers are not equal.
absl::Status OutputDir::OtherBytes(const std::string& name, const FileEntry& mine) const {
  // A worker for which shards are named has not read what was journalled of others.
  ASSIGN_OR_RETURN(const std::vector<ShardResult> lines, ReadJournals(PathOf(kPackFolder)));
  RETURN_IF_ERROR(CheckOnePlan(path_, plan_, lines));
  ASSIGN_OR_RETURN(const std::optional<uint32_t> shard, NotedShard(path_, name));
  const std::string path = PathOf(name);
  absl::StatusOr<File> file = File::OpenRead(path);
  if (!file.ok()) return file.status();
  ASSIGN_OR_RETURN(const uint64_t bytes, file->Size());
  ASSIGN_OR_RETURN(const Digest digest, SequentialReader(*file, bytes).Finish());
  const std::string text = absl::StrCat(
      EscapeForTerminal(path), " has the hash ", digest.ToHex(), ", and this worker has made ",
      mine.xxh3_128.ToHex(),
      bytes == mine.bytes ? "" : absl::StrCat(" (", bytes, " bytes, and ", mine.bytes, ")"),
      "; nothing was replaced. ");
  if (!shard) {
    return absl::FailedPreconditionError(
        absl::StrCat(text, "No worker has noted that file: move it away and run again"));
  }
  return absl::DataLossError(absl::StrCat(
      text,
      "Either it is damaged, or its worker had other libraries or another source: compare `pack "
      "--version` of both. Which one is right, a worker for which the shard is named decides "
      "(--shards ",
      *shard, "): it replaces what does not have the noted hash"));
}

absl::Status OutputDir::CheckMayPublish(const FileEntry& entry) const {
  if (!options_.shares() || WasThere(entry.name)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const bool there, Exists(PathOf(entry.name)));
  if (!there) return absl::OkStatus();
  ASSIGN_OR_RETURN(const bool same, Matches(PathOf(entry.name), entry));
  return same ? absl::OkStatus() : OtherBytes(entry.name, entry);
}

// A commit that has read the file must not publish it meanwhile; where the file system has no
// locks, it looks once more before that.
absl::Status OutputDir::ReplaceAlone(const std::string& staged, const std::string& name) const {
  absl::StatusOr<File> lock = LockPackFolder(path_, /*needed=*/false);
  for (int waits = 1; waits < kMaxLockWaits && absl::IsFailedPrecondition(lock.status()); ++waits) {
    std::this_thread::sleep_for(kLockPause);  // another worker that replaces, or a commit
    lock = LockPackFolder(path_, /*needed=*/false);
  }
  ASSIGN_OR_RETURN(const bool published, Exists(PathOf(kManifestName)));
  if (published) return Conflict(path_, "was published by another run just now");
  if (absl::IsFailedPrecondition(lock.status())) {
    return absl::UnavailableError(absl::StrCat(EscapeForTerminal(path_),
                                               " is being published, and ", EscapeForTerminal(name),
                                               " cannot be replaced meanwhile; run again"));
  }
  if (!lock.ok()) return lock.status();
  return folder_->Replace(staged, name);
}

absl::Status OutputDir::Publish(StagedFile& staged, const FileEntry& entry) const {
  const size_t slash = entry.name.find('/');
  const std::string folder = PathOf(entry.name.substr(0, slash));
  absl::Status status = slash == std::string::npos ? absl::OkStatus() : MakeDirectory(folder);
  if (!status.ok()) return status;
  const std::string staged_name = staged.path().substr(path_.size() + 1);
  status = Place(staged, PathOf(entry.name), options_.shares());
  if (absl::IsAlreadyExists(status)) {
    ASSIGN_OR_RETURN(const bool same, Matches(PathOf(entry.name), entry));
    // For a late worker, the manifest already covers what is there.
    if (!same && options_.worker) {
      ASSIGN_OR_RETURN(const bool published, Exists(PathOf(kManifestName)));
      if (published) return Conflict(path_, "was published by another run just now");
    }
    if (!same && options_.shares() && !WasThere(entry.name)) return OtherBytes(entry.name, entry);
    if (!same) RETURN_IF_ERROR(replaceable_->CheckMayReplace(entry.name));
    if (!same && options_.shares()) {
      status = ReplaceAlone(staged_name, entry.name);
    } else if (!same) {
      status = folder_->Replace(staged_name, entry.name);
    } else {
      status = absl::OkStatus();
    }
  }
  if (status.ok() && slash != std::string::npos && options_.fsync) status = SyncDirectory(folder);
  return status;
}

absl::StatusOr<FileEntry> OutputDir::WriteFile(const std::string& name,
                                               std::string_view bytes) const {
  std::string stage_name = name;
  std::replace(stage_name.begin(), stage_name.end(), '/', '_');
  const FileEntry entry{name, bytes.size(), Xxh3_128(AsBytes(bytes))};
  ASSIGN_OR_RETURN(std::unique_ptr<StagedFile> staged, StageWhole(stage_name, bytes));
  RETURN_IF_ERROR(Publish(*staged, entry));
  return entry;
}

absl::Status OutputDir::ClaimExtras(
    const std::vector<std::pair<std::string, std::string_view>>& files) {
  ASSIGN_OR_RETURN(std::set<std::string> ours, ReadNames(PathOf(kMadeExtrasName)));
  std::set<std::string> names = ours;
  for (const auto& [name, bytes] : files) {
    names.insert(name);
    if (ours.contains(name)) {
      RETURN_IF_ERROR(replaceable_->Note(name));
      continue;
    }
    ASSIGN_OR_RETURN(const bool there, Exists(PathOf(name)));
    if (!there) continue;
    ASSIGN_OR_RETURN(const bool same, Matches(PathOf(name), FileEntry{name, bytes.size(),
                                                                      Xxh3_128(AsBytes(bytes))}));
    if (!same)
      return Conflict(PathOf(name),
                      "was not made by pack, which would write it; move it away and run again");
  }
  return ReplaceInPack(kMadeExtrasName, NamesText(names));
}

absl::Status OutputDir::ReplaceInPack(std::string_view name, std::string_view bytes) const {
  return shardpack::ReplaceInPack(*folder_, *stage_, name, bytes, options_.fsync);
}

absl::StatusOr<Manifest> OutputDir::TakeSourceTimes(const Plan& plan) {
  ASSIGN_OR_RETURN(Manifest manifest, Manifest::Read(path_));
  const std::string times = plan.times_digest().ToHex();
  if (manifest.source_times == times && manifest.source_root == plan.listing().root)
    return manifest;
  // A kill leaves `.pack` beside a complete dataset; the next run removes it.
  RETURN_IF_ERROR(MakeDirectory(PathOf(kPackFolder)));
  RETURN_IF_ERROR(Lock());
  ASSIGN_OR_RETURN(manifest, Manifest::Read(path_));  // again, under the lock
  if (manifest.plan_digest != plan.digest())
    return Conflict(path_, "was replaced by another run just now");
  RETURN_IF_ERROR(MakeDirectory(PathOf(kStageFolder)));
  RETURN_IF_ERROR(OpenFolder());
  ASSIGN_OR_RETURN(stage_, RunStage::Create(path_));
  manifest.source_times = times;
  manifest.source_root = plan.listing().root;
  RETURN_IF_ERROR(CheckPackFolder(path_));
  {
    ASSIGN_OR_RETURN(const std::unique_ptr<StagedFile> staged,
                     StageWhole(kOfTheRun, manifest.ToJson()));
    RETURN_IF_ERROR(folder_->Replace(stage_->NameOf(kOfTheRun), kManifestName));
  }
  RETURN_IF_ERROR(Close());
  return manifest;
}

absl::Status OutputDir::SyncFolder() const {
  return options_.fsync ? SyncDirectory(path_) : absl::OkStatus();
}

// The new dataset takes the place of the old one, which is removed once the exchange can no longer
// be undone.
absl::Status OutputDir::Exchange() {
  const std::string pack_folder = absl::StrCat(out_, "/", std::string(kPackFolder));
  ASSIGN_OR_RETURN(const bool was_there, Exists(pack_folder));
  RETURN_IF_ERROR(MakeDirectory(pack_folder));
  ASSIGN_OR_RETURN(const File old_lock, LockPackFolder(out_));
  ASSIGN_OR_RETURN(const OwnedFolder old, OwnedFolder::Open(out_));
  const absl::Status status = MarkAndExchange(old);
  if (!status.ok()) {  // OUT is unchanged
    if (CheckMayWrite(old, kReplacedByName).ok()) (void)old.RemoveFile(kReplacedByName);
    if (was_there) return status;
    (void)old.RemoveFile(kLockName);
    (void)old.RemoveEmptyFolder(kPackFolder);
    return status;
  }
  std::swap(path_, out_);  // path_: the new dataset, out_: the old one
  if (options_.fsync) {
    RETURN_IF_ERROR(SyncDirectory(std::filesystem::path(path_).parent_path().native()));
  }
  ASSIGN_OR_RETURN(const bool gone, FinishReplacement(path_, out_));
  if (!gone) notice_ = NotTheReplaced(out_);
  return absl::OkStatus();
}

absl::Status OutputDir::MarkAndExchange(const OwnedFolder& old) {
  // OUT may have changed since the build began; from here on no other run works in it.
  RETURN_IF_ERROR(CheckIsOurs(out_));
  RETURN_IF_ERROR(CheckNoLiveWorkers(out_, options_.stop));
  ASSIGN_OR_RETURN(std::set<std::string> made, MadeFiles(out_));
  RETURN_IF_ERROR(
      CheckHoldsOnly(out_, made, "--overwrite would remove it. Move it away and run again"));
  const ReplacedNote note{NewMark(), std::move(made)};
  RETURN_IF_ERROR(MarkReplaced(old, note.mark, options_.fsync));
  RETURN_IF_ERROR(ReplaceInPack(kReplacedName, ReplacedText(note)));
  if (options_.fsync) {
    RETURN_IF_ERROR(SyncDirectory(PathOf(kPackFolder)));
  }
  return ExchangeFolders(path_, out_, out_);
}

absl::Status OutputDir::Close() {
  absl::Status status;
  if (path_ != out_) status = Exchange();
  claims_.reset();
  published_plan_.reset();
  stage_.reset();
  if (status.ok()) status = RemovePackFolder(*folder_);
  if (status.ok()) status = SyncFolder();
  const std::filesystem::path parent = std::filesystem::absolute(path_).parent_path();
  if (status.ok() && options_.fsync) status = SyncDirectory(parent.string());
  return status;
}

}  // namespace shardpack

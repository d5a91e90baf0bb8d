// OutputDir, third part: how files come to be in the folder, and how a commit ends.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "converters/publishing/output_dir.h"
#include "converters/publishing/pack_folder.h"
#include "converters/publishing/pack_lock.h"
#include "converters/publishing/pack_names.h"
#include "converters/publishing/replacement.h"
#include "converters/publishing/shard_results.h"
#include "formats/io/exists.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr char kOfTheRun[] = "of-the-run";  // in the stage

}  // namespace

// The file appears whole, and once: another run's file of that name stays.
absl::Status OutputDir::PublishOnce(const std::string& name, std::string_view bytes) const {
  ASSIGN_OR_RETURN(std::unique_ptr<StagedFile> staged, StageWhole(kOfTheRun, bytes));
  return staged->Publish(PathOf(name));
}

absl::StatusOr<std::unique_ptr<StagedFile>> OutputDir::Stage(const std::string& name) const {
  RETURN_IF_ERROR(folder_->RemoveFile(stage_->NameOf(name)));
  return StagedFile::Create(stage_->PathOf(name));
}

absl::StatusOr<std::unique_ptr<StagedFile>> OutputDir::StageWhole(const std::string& name,
                                                                  std::string_view bytes) const {
  ASSIGN_OR_RETURN(std::unique_ptr<StagedFile> staged, Stage(name));
  RETURN_IF_ERROR(staged->Append(AsBytes(bytes)));
  RETURN_IF_ERROR(options_.fsync ? staged->SyncData() : staged->Flush());
  return staged;
}

absl::Status OutputDir::Publish(StagedFile& staged, const FileEntry& entry) const {
  const size_t slash = entry.name.find('/');
  const std::string folder = PathOf(entry.name.substr(0, slash));
  absl::Status status = slash == std::string::npos ? absl::OkStatus() : MakeDirectory(folder);
  if (!status.ok()) return status;
  const std::string staged_name = staged.path().substr(path_.size() + 1);
  status = staged.Publish(PathOf(entry.name));
  if (absl::IsAlreadyExists(status)) {
    ASSIGN_OR_RETURN(const bool same, Matches(PathOf(entry.name), entry));
    // A worker that is late: the manifest vouches for what is there.
    if (!same && options_.shards_range) {
      ASSIGN_OR_RETURN(const bool published, Exists(PathOf(kManifestName)));
      if (published) return Conflict(path_, "was published by another run just now");
    }
    if (!same) RETURN_IF_ERROR(CheckMayReplace(entry.name));
    status = same ? absl::OkStatus() : folder_->Replace(staged_name, entry.name);
  }
  if (status.ok() && slash != std::string::npos && options_.fsync) status = SyncDirectory(folder);
  return status;
}

// What no run has noted is somebody else's, whenever it has come. Beside OUT a manifest is that of
// an earlier run.
absl::Status OutputDir::CheckMayReplace(const std::string& name) const {
  const bool own = name == kReplacedName || (name == kManifestName && replaces());
  if (own || noted_.contains(name)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::set<std::string> noted, NotedFiles(path_));
  if (noted.contains(name)) return absl::OkStatus();
  return Conflict(PathOf(name),
                  "was not made by this build, which would write another file of this name; "
                  "move it away and run again");
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
    const std::vector<std::pair<std::string, std::string_view>>& files) const {
  ASSIGN_OR_RETURN(std::set<std::string> ours, ReadNames(PathOf(kMadeExtrasName)));
  std::set<std::string> names = ours;
  for (const auto& [name, bytes] : files) {
    names.insert(name);
    if (ours.contains(name)) continue;
    ASSIGN_OR_RETURN(const bool there, Exists(PathOf(name)));
    if (!there) continue;
    ASSIGN_OR_RETURN(const bool same, Matches(PathOf(name), FileEntry{name, bytes.size(),
                                                                      Xxh3_128(AsBytes(bytes))}));
    if (!same)
      return Conflict(PathOf(name),
                      "was not made by pack, which would write it; move it away and run again");
  }
  return Replace(kMadeExtrasName, NamesText(names));
}

// A small file of `.pack`, whole, in place of what is there.
absl::Status OutputDir::Replace(std::string_view name, std::string_view bytes) const {
  RETURN_IF_ERROR(CheckPackFolder(path_));  // a link of somebody else would be lost
  ASSIGN_OR_RETURN(const std::unique_ptr<StagedFile> staged, StageWhole(kOfTheRun, bytes));
  return folder_->Replace(stage_->NameOf(kOfTheRun), name);
}

absl::StatusOr<Manifest> OutputDir::TakeSourceTimes(const Plan& plan) {
  ASSIGN_OR_RETURN(Manifest manifest, Manifest::Read(path_));
  const std::string times =
      TimesDigest(plan.listing().mtime_ns, plan.listing().field_mtime_ns).ToHex();
  if (manifest.source_times == times && manifest.source_root == plan.listing().root)
    return manifest;
  // A kill leaves `.pack` beside a whole dataset: the next run takes it away.
  RETURN_IF_ERROR(MakeDirectory(PathOf(kPackFolder)));
  RETURN_IF_ERROR(Lock());
  ASSIGN_OR_RETURN(manifest, Manifest::Read(path_));  // once more, under the lock
  if (manifest.plan_digest != plan.digest())
    return Conflict(path_, "was replaced by another run just now");
  RETURN_IF_ERROR(MakeDirectory(PathOf(kStageFolder)));
  ASSIGN_OR_RETURN(OwnedFolder folder, OwnedFolder::Open(path_));
  folder_ = std::make_unique<OwnedFolder>(std::move(folder));
  ASSIGN_OR_RETURN(stage_, RunStage::Create(path_));
  manifest.source_times = times;
  manifest.source_root = plan.listing().root;
  RETURN_IF_ERROR(Replace(kManifestName, manifest.ToJson()));
  RETURN_IF_ERROR(Close());
  return manifest;
}

absl::Status OutputDir::SyncFolder() const {
  return options_.fsync ? SyncDirectory(path_) : absl::OkStatus();
}

// The new dataset takes the place of the old one, which is removed when nothing can bring it back
// any more.
absl::Status OutputDir::Exchange() {
  // Much may have happened in OUT since the build began; from here on nobody else works in it.
  absl::Status status = MakeDirectory(absl::StrCat(out_, "/", std::string(kPackFolder)));
  if (!status.ok()) return status;
  ASSIGN_OR_RETURN(const File old_lock, LockPackFolder(out_));
  status = CheckIsOurs(out_);
  if (!status.ok()) return status;
  ASSIGN_OR_RETURN(std::set<std::string> made, MadeFiles(out_));
  status = CheckHoldsOnly(out_, made, "--overwrite would remove it. Move it away and run again");
  if (!status.ok()) return status;
  ASSIGN_OR_RETURN(FileEntry noted, WriteFile(std::string(kReplacedName), NamesText(made)));
  if (options_.fsync) status = SyncDirectory(PathOf(kPackFolder));
  if (!status.ok()) return status;
  if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, out_.c_str(), RENAME_EXCHANGE) != 0) {
    return IoStatus("exchange with the new dataset", out_, errno);
  }
  std::swap(path_, out_);  // path_: the new dataset, out_: the old one
  const std::string parent = std::filesystem::path(path_).parent_path().native();
  if (options_.fsync) status = SyncDirectory(parent);
  return status.ok() ? FinishReplacement(path_, out_) : status;
}

absl::Status OutputDir::Close() {
  absl::Status status;
  if (path_ != out_) status = Exchange();
  stage_.reset();
  if (status.ok()) status = RemovePackFolder(*folder_);
  if (status.ok()) status = SyncFolder();
  const std::filesystem::path parent = std::filesystem::absolute(path_).parent_path();
  if (status.ok() && options_.fsync) status = SyncDirectory(parent.string());
  return status;
}

}  // namespace shardpack

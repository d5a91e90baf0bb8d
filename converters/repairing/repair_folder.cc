#include "converters/repairing/repair_folder.h"

#include <errno.h>
#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "converters/publishing/conflict.h"
#include "converters/publishing/file_damage.h"
#include "converters/publishing/index_mark.h"
#include "converters/publishing/pack_folder.h"
#include "converters/publishing/pack_lock.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

// A renamed file may replace only a file or a link, never a folder, and its folder must be in the
// dataset, not reached through a link.
absl::Status CheckPlace(const std::string& out, const std::string& name) {
  if (!IsDatasetFileName(name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", EscapeForTerminal(name),
                     "\" is not a name of a file of a dataset; nothing was touched"));
  }
  struct stat facts;
  const size_t slash = name.find('/');
  if (slash != std::string::npos) {
    const std::string folder = absl::StrCat(out, "/", name.substr(0, slash));
    absl::Status made = MakeDirectory(folder);
    if (::lstat(folder.c_str(), &facts) == 0 && !S_ISDIR(facts.st_mode)) {
      return Conflict(
          folder,
          "is a link or a file, where the dataset has a folder; move it away and run again");
    }
    if (!made.ok()) return made;
  }
  const std::string path = absl::StrCat(out, "/", name);
  if (::lstat(path.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode) && !S_ISLNK(facts.st_mode)) {
    return Conflict(path, "is not a file; move it away and run again");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckNothingUnfinished(const std::string& out) {
  RETURN_IF_ERROR(CheckNotIndexed(out));
  ASSIGN_OR_RETURN(const OwnedFolder folder, OwnedFolder::Open(out));
  ASSIGN_OR_RETURN(const PackEntries entries, ListPackFolder(folder));
  RETURN_IF_ERROR(CheckJournal(folder, entries));
  const std::vector<std::string> unfinished = entries.Unfinished();
  if (unfinished.empty()) return absl::OkStatus();
  return Conflict(
      out,
      absl::StrCat("holds ", unfinished.front(),
                   " of a build that has not finished; run the same pack command again, or pack "
                   "commit if workers built it"));
}

absl::StatusOr<RepairFolder> RepairFolder::Open(const std::string& out, bool fsync) {
  ASSIGN_OR_RETURN(OwnedFolder owned, OwnedFolder::Open(out));
  absl::Status status = CheckPackFolder(out);
  if (status.ok()) status = CheckNotIndexed(out);
  if (status.ok()) status = MakeDirectory(owned.PathOf(".pack"));
  if (!status.ok()) return status;
  ASSIGN_OR_RETURN(File lock, LockPackFolder(out));
  // Check before anything in .pack is ours to remove.
  status = CheckNothingUnfinished(out);
  if (!status.ok()) return status;
  RepairFolder folder(std::move(owned), std::move(lock), fsync);
  // Files left by a killed repair are useless: none is known to be intact.
  status = RemoveStage(folder.folder_);
  if (status.ok()) status = MakeDirectory(folder.folder_.PathOf(".pack/stage"));
  if (!status.ok()) return status;
  ASSIGN_OR_RETURN(folder.stage_, RunStage::Create(out));
  return folder;
}

RepairFolder::~RepairFolder() { Close().IgnoreError(); }

std::string RepairFolder::StagePath(std::string_view name) const { return stage_->PathOf(name); }

absl::Status RepairFolder::Discard(std::string_view name) const {
  return folder_.RemoveTree(stage_->NameOf(name));
}

absl::StatusOr<File> RepairFolder::Create(std::string_view name) const {
  RETURN_IF_ERROR(Discard(name));
  return File::CreateExclusive(StagePath(name));
}

absl::Status RepairFolder::Stage(std::string_view name, std::string_view bytes) const {
  ASSIGN_OR_RETURN(File file, Create(name));
  const Bytes part = AsBytes(bytes);
  absl::Status status = file.Write(std::span(&part, 1));
  return status.ok() ? file.Close() : status;
}

absl::StatusOr<std::string> RepairFolder::Publish(
    std::string_view name, const FileEntry& entry,
    const std::function<absl::Status(uint64_t)>& on_block) const {
  absl::StatusOr<std::string> damage = Replace(name, entry, on_block);
  if (damage.ok() && damage->empty()) return damage;
  // The next file is staged under the same name.
  absl::Status removed = Discard(name);
  return removed.ok() ? damage : removed;
}

absl::StatusOr<std::string> RepairFolder::Replace(
    std::string_view name, const FileEntry& entry,
    const std::function<absl::Status(uint64_t)>& on_block) const {
  const std::string path = StagePath(name);
  absl::StatusOr<std::string> damage = DamageOf(path, entry, true, on_block);
  if (!damage.ok() || !damage->empty()) return damage;
  absl::Status status = CheckPlace(folder_.path(), entry.name);
  if (!status.ok()) return status;
  if (fsync_) {
    ASSIGN_OR_RETURN(File file, File::OpenRead(path));
    status = file.SyncData();
    if (!status.ok()) return status;
  }
  status = folder_.Replace(stage_->NameOf(name), entry.name);
  const std::string target = folder_.PathOf(entry.name);
  if (status.ok() && fsync_) status = SyncDirectory(target.substr(0, target.rfind('/')));
  if (!status.ok()) return status;
  return std::string();
}

absl::Status RepairFolder::Close() {
  if (!lock_.is_open()) return absl::OkStatus();
  stage_.reset();
  absl::Status status = RemovePackFolder(folder_);
  if (status.ok() && fsync_) status = SyncDirectory(folder_.path());
  lock_ = File();
  return status;
}

}  // namespace shardpack

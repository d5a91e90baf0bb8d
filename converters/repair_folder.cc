#include "converters/repair_folder.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "converters/pack_lock.h"
#include "formats/io/sequential_reader.h"
#include "formats/io/staged_file.h"

namespace shardpack {
namespace {

absl::Status Conflict(const std::string& path, const std::string& why) {
  return absl::FailedPreconditionError(absl::StrCat(EscapeForTerminal(path), " ", why));
}

// What a file is renamed over is a file or a link, never a folder, and lies in a folder of the dataset, not behind a link.
absl::Status CheckPlace(const std::string& out, const std::string& name) {
  struct stat facts;
  const size_t slash = name.find('/');
  if (slash != std::string::npos) {
    const std::string folder = absl::StrCat(out, "/", name.substr(0, slash));
    absl::Status made = MakeDirectory(folder);
    if (::lstat(folder.c_str(), &facts) == 0 && !S_ISDIR(facts.st_mode)) {
      return Conflict(folder, "is a link or a file, where the dataset has a folder; move it away and run again");
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

absl::StatusOr<std::string> DamageOf(const std::string& path, const FileEntry& entry, bool full,
                                     const std::function<absl::Status(uint64_t bytes)>& on_block) {
  struct stat facts;
  if (::stat(path.c_str(), &facts) != 0) {
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) return std::string("missing");
    return IoStatus("look at", path, errno);
  }
  if (!S_ISREG(facts.st_mode)) return std::string("not a file");
  const auto bytes = static_cast<uint64_t>(facts.st_size);
  if (bytes != entry.bytes) return absl::StrCat(bytes, " bytes where ", entry.bytes, " are expected");
  if (!full) return std::string();
  absl::StatusOr<File> file = File::OpenRead(path);
  if (!file.ok()) return file.status();
  SequentialReader in(*file, bytes);
  in.OnBlock(on_block);
  absl::StatusOr<Digest> digest = in.Finish();
  if (absl::IsCancelled(digest.status())) return digest.status();
  // A disk that does not give its bytes back, or a file that changes while it is read.
  if (!digest.ok()) return std::string(digest.status().message());
  return std::string(*digest == entry.xxh3_128 ? "" : "other bytes");
}

absl::StatusOr<RepairFolder> RepairFolder::Open(const std::string& out, bool fsync) {
  RepairFolder folder;
  folder.fsync_ = fsync;
  absl::Status status = CheckPackFolder(out);
  if (status.ok()) status = MakeDirectory(out + "/.pack");
  if (!status.ok()) return status;
  absl::StatusOr<File> lock = LockPackFolder(out);
  if (!lock.ok()) return lock.status();
  struct stat facts;
  if (::lstat((out + "/" + std::string(kIndexMark)).c_str(), &facts) == 0) {
    return Conflict(out, "holds shards that pack index has not finished with; run pack index there again");
  }
  folder.out_ = out;
  folder.lock_ = *std::move(lock);
  // What a killed repair has left there is of no use: nothing of it is known to be whole.
  status = RemoveTree(out + "/.pack/stage");
  if (status.ok()) status = MakeDirectory(out + "/.pack/stage");
  if (!status.ok()) return status;
  return folder;
}

RepairFolder::~RepairFolder() { Close().IgnoreError(); }

absl::Status RepairFolder::Stage(const std::string& name, std::string_view bytes) const {
  const std::string path = StagePath(name);
  absl::Status status = RemoveFile(path);
  if (!status.ok()) return status;
  absl::StatusOr<File> file = File::CreateExclusive(path);
  if (!file.ok()) return file.status();
  const Bytes part = AsBytes(bytes);
  status = file->Write(std::span(&part, 1));
  return status.ok() ? file->Close() : status;
}

absl::StatusOr<std::string> RepairFolder::Publish(const std::string& path, const FileEntry& entry) const {
  absl::StatusOr<std::string> damage = Replace(path, entry);
  if (damage.ok() && damage->empty()) return damage;
  // The next file is staged under the same name.
  absl::Status removed = RemoveFile(path);
  return removed.ok() ? damage : removed;
}

absl::StatusOr<std::string> RepairFolder::Replace(const std::string& path, const FileEntry& entry) const {
  absl::StatusOr<std::string> damage = DamageOf(path, entry, true, nullptr);
  if (!damage.ok() || !damage->empty()) return damage;
  absl::Status status = CheckPlace(out_, entry.name);
  if (!status.ok()) return status;
  const std::string target = absl::StrCat(out_, "/", entry.name);
  if (fsync_) {
    absl::StatusOr<File> file = File::OpenRead(path);
    if (!file.ok()) return file.status();
    status = file->SyncData();
    if (!status.ok()) return status;
  }
  if (::rename(path.c_str(), target.c_str()) != 0) return IoStatus("replace", target, errno);
  if (fsync_) {
    status = SyncDirectory(target.substr(0, target.rfind('/')));
    if (!status.ok()) return status;
  }
  return std::string();
}

absl::Status RepairFolder::Close() {
  if (!lock_.is_open()) return absl::OkStatus();
  absl::Status status = RemoveTree(out_ + "/.pack");
  if (status.ok() && fsync_) status = SyncDirectory(out_);
  lock_ = File();
  return status;
}

}  // namespace shardpack

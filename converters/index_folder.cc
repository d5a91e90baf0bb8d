#include "converters/index_folder.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "converters/pack_lock.h"
#include "formats/io/hash.h"
#include "formats/io/staged_file.h"

namespace shardpack {
namespace {

bool Exists(const std::string& path) {
  struct stat facts;
  return ::lstat(path.c_str(), &facts) == 0;
}

absl::Status Conflict(const std::string& path, const std::string& why) {
  return absl::FailedPreconditionError(absl::StrCat(EscapeForTerminal(path), " ", why));
}

// Whether the file is, byte for byte, what the entry says.
absl::StatusOr<bool> Matches(const std::string& path, const FileEntry& entry) {
  absl::StatusOr<std::string> bytes = ReadWholeFile(path, entry.bytes);
  if (absl::IsNotFound(bytes.status()) || absl::IsOutOfRange(bytes.status())) return false;
  if (!bytes.ok()) return bytes.status();
  return bytes->size() == entry.bytes && Xxh3_128(AsBytes(*bytes)) == entry.xxh3_128;
}

}  // namespace

absl::StatusOr<IndexFolder> IndexFolder::Open(const std::string& out,
                                              const IndexFolderOptions& options) {
  IndexFolder folder;
  folder.out_ = out;
  folder.options_ = options;
  absl::Status status = folder.ReadManifest();
  if (status.ok() && (!folder.manifest_ || options.overwrite)) {
    status = folder.Begin();
  } else if (status.ok() && Exists(out + "/.pack")) {
    // Killed right after the manifest was in place.
    absl::StatusOr<File> lock = LockPackFolder(out);
    status = lock.ok() ? RemoveTree(out + "/.pack") : lock.status();
  }
  if (!status.ok()) return status;
  return folder;
}

IndexFolder::~IndexFolder() {
  // Half published, `.pack` says so until the next run.
  if (!lock_.is_open() || publishing_) return;
  // Nothing is left to be done about an error here: the run has failed already, or is done.
  (void)RemoveTree(out_ + "/.pack");
  for (auto folder = created_.rbegin(); folder != created_.rend(); ++folder)
    (void)::rmdir(folder->c_str());
}

absl::Status IndexFolder::ReadManifest() {
  struct stat facts;
  if (::stat(out_.c_str(), &facts) == 0 && !S_ISDIR(facts.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the output ", EscapeForTerminal(out_), " is a file; it must be a folder"));
  }
  if (!Exists(absl::StrCat(out_, "/", std::string(kManifestName)))) return absl::OkStatus();
  absl::StatusOr<Manifest> manifest = Manifest::Read(out_);
  if (!manifest.ok()) return manifest.status();
  if (!manifest->adopted()) {
    return Conflict(out_, "holds a dataset that pack has made: it has its indexes");
  }
  manifest_ = *std::move(manifest);
  return absl::OkStatus();
}

absl::Status IndexFolder::CheckIsOurs() {
  const std::string pack = out_ + "/.pack";
  std::error_code error;
  if (Exists(pack)) {
    resumes_ = true;
    for (std::filesystem::directory_iterator it(pack, error), end; !error && it != end;
         it.increment(error)) {
      const std::string name = it->path().filename().native();
      if (name == "lock" || name == "stage") continue;
      return Conflict(out_, "holds an unfinished build; finish it, or use another folder");
    }
    return error ? IoStatus("list", pack, error.value()) : absl::OkStatus();
  }
  if (options_.holds_shards || manifest_) return absl::OkStatus();
  const std::filesystem::directory_iterator it(out_, error);
  if (error) return IoStatus("list", out_, error.value());
  if (it == std::filesystem::directory_iterator()) return absl::OkStatus();
  return Conflict(out_, absl::StrCat("is not empty and holds neither a dataset nor these shards "
                                     "(first entry: ",
                                     EscapeForTerminal(it->path().filename().native()),
                                     "); use another folder"));
}

absl::Status IndexFolder::Begin() {
  std::error_code error;
  std::filesystem::path missing = std::filesystem::absolute(out_, error);
  while (!error && !missing.empty() && !std::filesystem::exists(missing, error)) {
    created_.insert(created_.begin(), missing.native());
    missing = missing.parent_path();
  }
  if (!error) std::filesystem::create_directories(out_, error);
  if (error) return IoStatus("create folder", out_, error.value());
  absl::Status status = CheckIsOurs();
  if (status.ok()) status = MakeDirectory(out_ + "/.pack");
  if (!status.ok()) return status;
  absl::StatusOr<File> lock = LockPackFolder(out_);
  if (!lock.ok()) return lock.status();
  lock_ = *std::move(lock);
  status = RemoveTree(out_ + "/.pack/stage");
  return status.ok() ? MakeDirectory(out_ + "/.pack/stage") : status;
}

std::string IndexFolder::StagedPath(uint32_t number) const {
  return absl::StrCat(out_, "/.pack/stage/", number, std::string(kIndexSuffix));
}

absl::Status IndexFolder::WriteStaged(const std::string& path, std::string_view bytes) const {
  absl::StatusOr<std::unique_ptr<StagedFile>> staged = StagedFile::Create(path + ".new");
  if (!staged.ok()) return staged.status();
  absl::Status status = (*staged)->Append(AsBytes(bytes));
  if (status.ok()) status = options_.fsync ? (*staged)->SyncData() : (*staged)->Flush();
  // So that it is closed: there may be more shards than descriptors.
  return status.ok() ? (*staged)->Publish(path) : status;
}

absl::StatusOr<FileEntry> IndexFolder::Stage(uint32_t number, const std::string& name,
                                             std::string_view bytes) {
  if (writable()) {
    absl::Status written = WriteStaged(StagedPath(number), bytes);
    if (!written.ok()) return written;
  }
  return FileEntry{name, bytes.size(), Xxh3_128(AsBytes(bytes))};
}

absl::Status IndexFolder::Sync() const {
  return options_.fsync ? SyncDirectory(out_) : absl::OkStatus();
}

// Makes room for the indexes, first of all by taking the manifest away: what is left is then no
// dataset, and none that anybody could take for whole.
absl::Status IndexFolder::RemoveOld(const Manifest& manifest) {
  const bool replaces = options_.overwrite || resumes_;
  std::vector<std::string> old;
  for (const ManifestShard& shard : manifest.shards) {
    const std::string path = absl::StrCat(out_, "/", shard.index.name);
    if (!Exists(path)) continue;
    absl::StatusOr<bool> same = Matches(path, shard.index);
    if (!same.ok()) return same.status();
    if (!*same && !replaces) {
      return Conflict(path, "is there and not the index of this shard; --overwrite replaces it");
    }
    old.push_back(path);
  }
  publishing_ = true;
  if (manifest_) {
    for (const ManifestShard& shard : manifest_->shards)
      old.push_back(absl::StrCat(out_, "/", shard.index.name));
    absl::Status removed = RemoveFile(absl::StrCat(out_, "/", std::string(kManifestName)));
    if (removed.ok()) removed = Sync();
    if (!removed.ok()) return removed;
  }
  for (const std::string& path : old) {
    absl::Status removed = RemoveFile(path);
    if (!removed.ok()) return removed;
  }
  return absl::OkStatus();
}

absl::Status IndexFolder::Publish(const Manifest& manifest) {
  const std::string staged_manifest = out_ + "/.pack/stage/" + std::string(kManifestName);
  absl::Status status = WriteStaged(staged_manifest, manifest.ToJson());
  if (status.ok()) status = RemoveOld(manifest);
  for (uint32_t i = 0; status.ok() && i < manifest.shards.size(); ++i) {
    status = RenameNoReplace(StagedPath(i), absl::StrCat(out_, "/", manifest.shards[i].index.name));
  }
  if (status.ok()) status = Sync();
  if (status.ok()) {
    status = RenameNoReplace(staged_manifest, absl::StrCat(out_, "/", std::string(kManifestName)));
  }
  if (status.ok()) status = Sync();
  if (status.ok() && options_.fsync && !created_.empty()) {
    for (const std::string& folder : created_) {
      const std::string parent = std::filesystem::path(folder).parent_path().native();
      if (status.ok()) status = SyncDirectory(parent);
    }
  }
  if (status.ok()) status = RemoveTree(out_ + "/.pack");
  if (status.ok()) created_.clear();
  return status;
}

}  // namespace shardpack

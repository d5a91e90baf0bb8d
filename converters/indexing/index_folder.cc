#include "converters/indexing/index_folder.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "converters/listing/offered_flags.h"
#include "converters/publishing/conflict.h"
#include "converters/publishing/file_damage.h"
#include "converters/publishing/index_mark.h"
#include "converters/publishing/manifest_text.h"
#include "converters/publishing/pack_folder.h"
#include "converters/publishing/pack_lock.h"
#include "converters/sources/damaged_manifest.h"
#include "formats/core/dataset_parts.h"
#include "formats/core/shard_index.h"
#include "formats/io/exists.h"
#include "formats/io/hash.h"
#include "formats/io/list_folder.h"
#include "formats/io/shell_quoted.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr std::string_view kIndexMagic = "SPKPIDX1";  // docs/formats/pidx.md
constexpr char kMarkBeingWritten[] = "of-the-run";    // in the stage

absl::StatusOr<bool> IsIndex(const OwnedFolder& folder, const std::string& name) {
  if (!OwnedFolder::IsName(name)) return false;
  ASSIGN_OR_RETURN(const OwnedFolder::Look look, folder.LookAt(name));
  if (look.kind != OwnedFolder::Kind::kFile) return false;
  const absl::StatusOr<std::string> magic = folder.Read(name, kIndexMagic.size());
  if (!magic.ok() && !absl::IsNotFound(magic.status())) return magic.status();
  return magic.ok() && *magic == kIndexMagic;
}

// The first entry of a folder that is not `.pack`, the manifest or an index; "" if there is none.
absl::StatusOr<std::string> FirstOther(const OwnedFolder& folder) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(folder.path()));
  for (const std::string& name : names) {
    if (name == ".pack" || name == kManifestName) continue;
    ASSIGN_OR_RETURN(const bool index, IsIndex(folder, name));
    if (!index) return name;
  }
  return std::string();
}

// Whether the existing index, of a shard of the same size, has source paths that the new one lacks,
// which means that a build made it.
bool LosesSourcePaths(const std::string& there, const std::string& made, uint64_t shard_bytes) {
  const absl::StatusOr<ShardIndex> old = ShardIndex::Open(there, shard_bytes);
  const absl::StatusOr<ShardIndex> index = ShardIndex::Open(made, shard_bytes);
  if (!old.ok() || !index.ok()) return false;
  for (uint64_t r = 0; r < old->records(); ++r) {
    const bool kept = r < index->records() && !index->source_path(r).empty();
    if (!old->source_path(r).empty() && !kept) return true;
  }
  return false;
}

// Not replaced, even with --overwrite: an index of the shards alone says less, and damage of the
// shards would be taken for what they should be.
absl::Status LostDataset(const std::string& out, const std::string& index) {
  return absl::DataLossError(absl::StrCat(
      EscapeForTerminal(index),
      " is the index that pack built along with this shard: ", EscapeForTerminal(out),
      " is a dataset whose manifest.json is lost. To restore it from a copy of the dataset (the "
      "command that built it makes one in another folder):\n  ",
      TypedProgram(), " repair ", ShellQuoted(out),
      " --from COPY\nIt is not replaced, also not with --overwrite: an index of the shards alone "
      "would lose the paths of the source, the names of the classes, and what tells whether the "
      "shards are damaged. To index them all the same, use -o OTHER, another folder"));
}

absl::Status NotAnIndex(const std::string& path) {
  return Conflict(path,
                  "already exists and is not an index made by pack, so it is not replaced; move it "
                  "away and run again");
}

// Whether the manifest that is there may be replaced: a file, no link, that pack has written.
// `damaged`: whether it could not be read as one.
absl::Status CheckIsManifest(const std::string& out, bool damaged) {
  ASSIGN_OR_RETURN(const OwnedFolder folder, OwnedFolder::Open(out));
  ASSIGN_OR_RETURN(const OwnedFolder::Look look, folder.LookAt(kManifestName));
  if (look.kind == OwnedFolder::Kind::kNothing) return absl::OkStatus();
  const std::string path = folder.PathOf(kManifestName);
  if (look.kind != OwnedFolder::Kind::kFile) {
    return Conflict(path,
                    "is not a file that pack wrote, so it is not replaced; move it away and run "
                    "again");
  }
  if (!damaged) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string text, folder.Read(kManifestName, kMaxManifestBytes));
  if (IsManifestText(text)) return absl::OkStatus();
  return Conflict(path,
                  "was not written by pack, so it is not replaced; move it away and run again");
}

// Damaged it may be without what tells an index: of the size that its manifest says, or empty.
absl::Status CheckMayBeIndex(const OwnedFolder& folder, const FileEntry& listed) {
  ASSIGN_OR_RETURN(const OwnedFolder::Look look, folder.LookAt(listed.name));
  const bool may_be =
      look.kind == OwnedFolder::Kind::kFile && (look.bytes == listed.bytes || look.bytes == 0);
  return may_be || look.kind == OwnedFolder::Kind::kNothing
             ? absl::OkStatus()
             : NotAnIndex(folder.PathOf(listed.name));
}

}  // namespace

absl::StatusOr<bool> HoldsOnlyIndexes(const std::string& out) {
  ASSIGN_OR_RETURN(const OwnedFolder folder, OwnedFolder::Open(out));
  ASSIGN_OR_RETURN(const std::string other, FirstOther(folder));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(out));
  return other.empty() && HasIndex(names);
}

absl::StatusOr<IndexFolder> IndexFolder::Open(const std::string& out,
                                              const IndexFolderOptions& options) {
  IndexFolder folder;
  folder.out_ = out;
  folder.options_ = options;
  absl::Status status = folder.ReadManifest();
  if (!status.ok()) return status;
  ASSIGN_OR_RETURN(const bool unfinished, Exists(out + "/.pack"));
  if (!folder.manifest_ || options.overwrite || unfinished) status = folder.Begin();
  if (!status.ok()) return status;
  if (folder.manifest_ && !options.overwrite && folder.lock_.is_open()) {
    // Killed right after the manifest was in place, or another run has just put it there.
    status = RemovePackFolder(*folder.folder_);
    folder.lock_ = File();
    if (!status.ok()) return status;
  }
  return folder;
}

IndexFolder::~IndexFolder() {
  stage_.reset();
  // Partly published: `.pack` records that until the next run.
  if (!lock_.is_open() || publishing_ || !marked_.empty()) return;
  // Ignore errors here: the run has already failed, or is done.
  (void)RemovePack();
  for (auto folder = created_.rbegin(); folder != created_.rend(); ++folder)
    (void)::rmdir(folder->c_str());
}

absl::Status IndexFolder::ReadManifest() {
  struct stat facts;
  if (::stat(out_.c_str(), &facts) == 0 && !S_ISDIR(facts.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the output ", EscapeForTerminal(out_), " is a file; it must be a folder"));
  }
  manifest_.reset();
  damaged_ = false;
  const absl::StatusOr<bool> there = Exists(absl::StrCat(out_, "/", std::string(kManifestName)));
  if (!there.ok() || !*there) return there.status();
  absl::StatusOr<Manifest> manifest = Manifest::Read(out_);
  if (!manifest.ok()) return TakeDamage(manifest.status());
  if (!manifest->indexed_in_place()) {
    return Conflict(out_, "holds a dataset that pack has made: it has its indexes");
  }
  if (options_.overwrite) {
    RETURN_IF_ERROR(CheckIsManifest(out_, /*damaged=*/false));
  }
  manifest_ = *std::move(manifest);
  return absl::OkStatus();
}

// A damaged manifest with only indexes beside it is rebuilt from the shards. With shards beside it,
// it may belong to a dataset that pack has built.
absl::Status IndexFolder::TakeDamage(const absl::Status& damage) {
  if (!absl::IsDataLoss(damage)) return DamagedManifest(out_, damage);
  ASSIGN_OR_RETURN(const bool only_indexes, HoldsOnlyIndexes(out_));
  if (!only_indexes) return DamagedManifest(out_, damage);
  RETURN_IF_ERROR(CheckIsManifest(out_, /*damaged=*/true));
  damaged_ = options_.overwrite;
  if (damaged_) return absl::OkStatus();
  return OfferFlags(
      absl::DataLossError(absl::StrCat(std::string(damage.message()),
                                       "\n--overwrite creates it again from the shards, and the "
                                       "indexes beside it")),
      {{"--overwrite"}});
}

absl::Status IndexFolder::CheckPackEntries() const {
  RETURN_IF_ERROR(CheckPackFolder(out_));
  ASSIGN_OR_RETURN(const PackEntries entries, ListPackFolder(*folder_));
  RETURN_IF_ERROR(CheckJournal(*folder_, entries));
  for (const std::string& name : entries.Unfinished()) {
    if (name == kIndexMark) continue;
    return Conflict(out_, "holds an unfinished build; finish it, or use another folder");
  }
  return absl::OkStatus();
}

absl::Status IndexFolder::CheckIsOurs() {
  absl::Status status = CheckPackEntries();
  if (status.ok()) status = ReadMark();
  if (!status.ok() || options_.holds_shards || manifest_ || !marked_.empty()) return status;
  // Indexes without a manifest may be replaced.
  ASSIGN_OR_RETURN(const std::string other, FirstOther(*folder_));
  if (other.empty()) return absl::OkStatus();
  return Conflict(out_, absl::StrCat("is not empty and holds neither a dataset nor these shards "
                                     "(first entry: ",
                                     EscapeForTerminal(other), "); use another folder"));
}

absl::Status IndexFolder::ReadMark() {
  marked_.clear();
  const absl::StatusOr<std::string> text = folder_->Read(kIndexMark, kMaxManifestBytes);
  if (absl::IsNotFound(text.status())) return absl::OkStatus();
  if (!text.ok()) return text.status();
  std::optional<std::set<std::string>> names = ParseIndexMark(*text);
  if (!names) {
    return Conflict(folder_->PathOf(kIndexMark),
                    "is not what this version of pack index notes there; move it away and run "
                    "again");
  }
  marked_ = *std::move(names);
  return absl::OkStatus();
}

absl::Status IndexFolder::WriteMark() const {
  ASSIGN_OR_RETURN(std::unique_ptr<StagedFile> staged,
                   StageBytes(stage_->PathOf(kMarkBeingWritten), IndexMarkText(marked_)));
  absl::Status status = folder_->Replace(stage_->NameOf(kMarkBeingWritten), kIndexMark);
  if (!status.ok()) return status;
  if (options_.fsync) status = SyncDirectory(out_ + "/.pack");
  return status.ok() ? Sync() : status;
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
  ASSIGN_OR_RETURN(OwnedFolder owned, OwnedFolder::Open(out_));
  folder_ = std::make_unique<OwnedFolder>(std::move(owned));
  absl::Status status = CheckIsOurs();
  if (status.ok()) status = MakeDirectory(out_ + "/.pack");
  if (!status.ok()) return status;
  ASSIGN_OR_RETURN(lock_, LockPackFolder(out_));
  return BeginLocked();
}

// Another run may have changed what was checked before, and ended since.
absl::Status IndexFolder::BeginLocked() {
  absl::Status status = ReadManifest();
  if (status.ok()) status = CheckIsOurs();
  if (!status.ok()) lock_ = File();  // `.pack` may then hold another run's files
  if (!status.ok() || (manifest_ && !options_.overwrite)) return status;
  status = RemoveStage(*folder_);
  if (status.ok()) status = MakeDirectory(out_ + "/.pack/stage");
  if (!status.ok()) return status;
  ASSIGN_OR_RETURN(stage_, RunStage::Create(out_));
  return WriteMark();
}

std::string IndexFolder::StagedPath(uint32_t number) const {
  return stage_->PathOf(absl::StrCat(number, std::string(kIndexSuffix)));
}

absl::StatusOr<std::unique_ptr<StagedFile>> IndexFolder::StageBytes(const std::string& path,
                                                                    std::string_view bytes) const {
  ASSIGN_OR_RETURN(std::unique_ptr<StagedFile> staged, StagedFile::Create(path));
  absl::Status status = staged->Append(AsBytes(bytes));
  if (status.ok()) status = options_.fsync ? staged->SyncData() : staged->Flush();
  if (!status.ok()) return status;
  return staged;
}

absl::Status IndexFolder::WriteStaged(const std::string& path, std::string_view bytes) const {
  ASSIGN_OR_RETURN(std::unique_ptr<StagedFile> staged, StageBytes(path + ".new", bytes));
  return staged->Publish(path);  // and closed: shards may outnumber descriptors
}

absl::StatusOr<FileEntry> IndexFolder::Stage(uint32_t number, const std::string& name,
                                             std::string_view bytes) {
  if (writable()) {
    RETURN_IF_ERROR(WriteStaged(StagedPath(number), bytes));
  }
  return FileEntry{name, bytes.size(), Xxh3_128(AsBytes(bytes))};
}

absl::Status IndexFolder::Sync() const {
  return options_.fsync ? SyncDirectory(out_) : absl::OkStatus();
}

// At the path of a new index, this may be replaced: the same index, one that a killed run has put
// there, and with `overwrite` any index that no build made.
absl::Status IndexFolder::CheckPlaceOf(const ManifestShard& shard, uint32_t number) const {
  const FileEntry& index = shard.index;
  const std::string path = folder_->PathOf(index.name);
  ASSIGN_OR_RETURN(const OwnedFolder::Look look, folder_->LookAt(index.name));
  if (look.kind == OwnedFolder::Kind::kNothing) return absl::OkStatus();
  ASSIGN_OR_RETURN(const bool is_index, IsIndex(*folder_, index.name));
  if (!is_index) return NotAnIndex(path);
  if (marked_.contains(index.name)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string damage, DamageOf(path, index, true, nullptr));
  if (damage.empty()) return absl::OkStatus();
  if (LosesSourcePaths(path, StagedPath(number), shard.bytes)) return LostDataset(out_, path);
  if (options_.overwrite) return absl::OkStatus();
  return OfferFlags(
      Conflict(path, "is there and not the index of this shard; --overwrite replaces it"),
      {{"--overwrite"}});
}

// Makes room for the indexes. Removes the manifest first, so that the rest cannot be mistaken for a
// complete dataset.
absl::Status IndexFolder::RemoveOld(const Manifest& manifest) {
  std::map<std::string, FileEntry> listed;  // in the existing manifest
  if (manifest_) {
    for (const ManifestShard& shard : manifest_->shards) listed[shard.index.name] = shard.index;
  }
  std::set<std::string> names = marked_;
  for (const auto& [name, index] : listed) names.insert(name);
  for (uint32_t i = 0; i < manifest.shards.size(); ++i) {
    const ManifestShard& shard = manifest.shards[i];
    if (!listed.contains(shard.index.name)) RETURN_IF_ERROR(CheckPlaceOf(shard, i));
    names.insert(shard.index.name);
  }
  std::vector<std::string> old;  // read before anything is changed
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(const bool index, IsIndex(*folder_, name));
    const auto entry = listed.find(name);
    if (!index && entry != listed.end()) {
      RETURN_IF_ERROR(CheckMayBeIndex(*folder_, entry->second));
    }
    if (index || entry != listed.end()) old.push_back(name);
  }
  publishing_ = true;
  marked_ = std::move(names);
  RETURN_IF_ERROR(WriteMark());
  if (manifest_ || damaged_) {
    absl::Status removed = folder_->RemoveFile(kManifestName);
    if (removed.ok()) removed = Sync();
    if (!removed.ok()) return removed;
  }
  for (const std::string& name : old) {
    RETURN_IF_ERROR(folder_->RemoveFile(name));
  }
  return absl::OkStatus();
}

// The mark is known to be this run's; its content need not be read again.
absl::Status IndexFolder::RemovePack() const {
  RETURN_IF_ERROR(folder_->RemoveFile(kIndexMark));
  return RemovePackFolder(*folder_);
}

absl::Status IndexFolder::Publish(const Manifest& manifest) {
  const std::string staged_manifest = stage_->PathOf(kManifestName);
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
  stage_.reset();
  if (status.ok()) status = RemovePack();
  if (status.ok()) created_.clear();
  if (status.ok()) marked_.clear();
  return status;
}

}  // namespace shardpack

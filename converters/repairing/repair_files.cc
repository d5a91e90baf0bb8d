// Takes identical files from a copy; rebuilds what formats and the manifest derive from shards and
// indexes.
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "converters/planning/record_order.h"
#include "converters/publishing/commit.h"
#include "converters/repairing/copy_records.h"
#include "converters/repairing/repair_work.h"
#include "formats/io/list_folder.h"
#include "formats/io/sequential_reader.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

// The returned status is about OUT; errors of reading the copy go to `unread`.
absl::Status StageCopy(const RepairWork& work, const std::string& from, absl::Status& unread) {
  const absl::StatusOr<File> in = File::OpenRead(from);
  unread = in.status();
  if (!in.ok()) return absl::OkStatus();
  ASSIGN_OR_RETURN(File out, work.folder->Create(kStagedName));
  std::vector<std::byte> block(1 << 20);
  for (uint64_t at = 0;;) {
    RETURN_IF_ERROR(work.CheckStop());
    const absl::StatusOr<size_t> got = in->ReadAt(at, block);
    unread = got.status();
    if (!got.ok()) return absl::OkStatus();
    if (*got == 0) return out.Close();
    const Bytes part = std::span(block).first(*got);
    RETURN_IF_ERROR(out.Write(std::span(&part, 1)));
    at += *got;
  }
}

std::string ExtensionOf(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const size_t dot = name.rfind('.');
  return std::string(dot == name.npos ? "" : name.substr(dot));
}

absl::StatusOr<Digest> HashOf(const RepairWork& work, const std::string& path) {
  ASSIGN_OR_RETURN(const File file, File::OpenRead(path));
  ASSIGN_OR_RETURN(const uint64_t bytes, file.Size());
  SequentialReader in(file, bytes);
  in.OnBlock([&](uint64_t) { return work.CheckStop(); });
  return in.Finish();
}

// Takes a copy's file that should equal the target. Its bytes are hashed while staged; with dry_run
// nothing is staged.
absl::Status TakeWholeFile(RepairWork& work, RepairTarget& target, const std::string& path,
                           const std::string& from) {
  const absl::StatusOr<std::string> damage =
      DamageOf(path, target.file, work.options.dry_run, [&](uint64_t) { return work.CheckStop(); });
  absl::Status unread = damage.status();
  if (damage.ok() && !damage->empty()) return absl::OkStatus();
  if (unread.ok() && !work.options.dry_run) RETURN_IF_ERROR(StageCopy(work, path, unread));
  if (unread.ok()) return work.Publish(target, std::string(kStagedName), from);
  if (EndsTheRun(unread)) return unread;
  target.why_not.insert(std::string(unread.message()));
  return absl::OkStatus();
}

// Each record's index in plan order, if the copy is in that order.
absl::StatusOr<std::string> OrderByCopy(const RepairWork& work, const DatasetCopy& from) {
  CopyRecords copy(from);
  ASSIGN_OR_RETURN(const std::vector<RecordPlace> order, copy.InOrder());
  absl::flat_hash_map<std::string_view, uint32_t> places;
  for (const RecordPlace at : order)
    places.try_emplace(copy.key(at), static_cast<uint32_t>(places.size()));
  std::string bytes;
  for (uint32_t n = 0; n < work.manifest.shards.size(); ++n) {
    RETURN_IF_ERROR(work.CheckStop());
    ASSIGN_OR_RETURN(const ShardIndex* index, work.OwnIndex(n));
    if (index == nullptr) return absl::DataLossError("an index is still missing");
    for (uint64_t record = 0; record < index->records(); ++record) {
      const auto place = places.find(index->key(record));
      if (place == places.end()) return absl::NotFoundError("the copy lacks samples");
      bytes.resize(bytes.size() + 4);
      StoreLittle(bytes.data() + bytes.size() - 4, place->second);
    }
  }
  return bytes;
}

// order.u32, from a copy in plan order.
absl::Status RebuildOrder(RepairWork& work, RepairTarget& target) {
  for (const RepairSource& source : work.sources) {
    if (!source.copy || !target.lost()) continue;
    const absl::StatusOr<std::string> bytes = OrderByCopy(work, *source.copy);
    if (EndsTheRun(bytes.status())) return bytes.status();
    if (bytes.ok()) {
      RETURN_IF_ERROR(work.PublishBytes(target, *bytes, source.name));
    } else if (work.options.dry_run && CopyRecords(*source.copy).InOrder().ok()) {
      // An index that it needs does not exist yet.
      RETURN_IF_ERROR(work.Publish(target, "", source.name));
    } else {
      target.why_not.insert(absl::StrCat(source.name, ": ", std::string(bytes.status().message())));
    }
  }
  return absl::OkStatus();
}

bool AnyShardLost(const RepairWork& work) {
  return std::any_of(work.targets.begin(), work.targets.end(), [](const RepairTarget& target) {
    return target.lost() && target.kind == RepairTarget::Kind::kShard;
  });
}

// Rebuilds the files that the format makes from intact shards and indexes.
absl::Status RebuildMadeFiles(RepairWork& work) {
  const std::vector<std::string> kinds =
      absl::StrSplit(work.Option("sidecar-index"), ',', absl::SkipEmpty());
  const absl::StatusOr<std::vector<FileMaker>> makers =
      FileMakersOf(work.format, work.layout, kinds);
  if (!makers.ok()) {
    for (RepairTarget* target : work.Lost())
      target->why_not.insert(std::string(makers.status().message()));
    return absl::OkStatus();
  }
  for (uint32_t n = 0; n < work.manifest.shards.size(); ++n) {
    if (work.LostIndex(n) == nullptr) continue;
    for (RepairTarget* target : work.Lost()) {
      if (target->kind == RepairTarget::Kind::kOther)
        target->why_not.insert("an index that it is made from is lost");
    }
    return absl::OkStatus();
  }
  if (work.options.dry_run) {  // shards and a scratch folder do not exist yet
    for (RepairTarget* target : work.Lost()) {
      const bool made = target->kind == RepairTarget::Kind::kOther &&
                        target->file.name != kSkippedName && target->file.name != kRecordOrderName;
      RETURN_IF_ERROR(made && !makers->empty() ? work.Publish(*target, "", "the shards")
                                               : absl::OkStatus());
    }
    return absl::OkStatus();
  }
  std::vector<ShardIndex> indexes;
  for (uint32_t n = 0; n < work.manifest.shards.size(); ++n) {
    ASSIGN_OR_RETURN(const ShardIndex* index, work.OwnIndex(n));
    if (index == nullptr) return absl::OkStatus();  // damaged, but not to be repaired
    indexes.push_back(*index);
  }
  const std::string scratch = work.folder->StagePath("");
  const SidecarInput input{work.out, work.manifest, indexes, scratch};
  for (const FileMaker make : *makers) {
    if (work.Lost().empty()) break;
    RETURN_IF_ERROR(work.CheckStop());
    absl::StatusOr<std::vector<NamedBytes>> files = make(input);
    if (EndsTheRun(files.status())) return files.status();
    // A shard that could not be rebuilt may be unreadable.
    const bool of_shard = AnyShardLost(work) && (absl::IsPermissionDenied(files.status()) ||
                                                 absl::IsUnavailable(files.status()));
    if (!files.ok() && !of_shard && !IsOfOneFile(files.status())) return files.status();
    for (RepairTarget* target : work.Lost()) {
      if (target->kind != RepairTarget::Kind::kOther) continue;
      if (!files.ok()) {
        target->why_not.insert(std::string(files.status().message()));
        continue;
      }
      for (const NamedBytes& file : *files) {
        if (file.name != target->file.name) continue;
        RETURN_IF_ERROR(work.PublishBytes(*target, file.bytes, "the shards"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status TakeWholeFiles(RepairWork& work) {
  for (const RepairSource& source : work.sources) {
    if (!source.copy) continue;
    std::map<std::string, const FileEntry*> by_hash;
    for (const FileEntry& file : source.copy->manifest().files)
      by_hash[file.xxh3_128.ToHex()] = &file;
    for (RepairTarget* target : work.Lost()) {
      const auto found = by_hash.find(target->file.xxh3_128.ToHex());
      if (target->outside || found == by_hash.end()) continue;
      RETURN_IF_ERROR(work.CheckStop());
      RETURN_IF_ERROR(
          TakeWholeFile(work, *target, source.copy->PathOf(found->second->name), source.name));
    }
  }
  return absl::OkStatus();
}

absl::Status TakeLooseFiles(RepairWork& work) {
  std::set<std::string, std::less<>> listed;
  for (const FileEntry& file : work.manifest.files) listed.insert(file.name);
  // By extension and size, then by hash: a file is read only if it may be one of them.
  std::map<std::pair<std::string, uint64_t>, std::map<std::string, RepairTarget*>> wanted;
  for (RepairTarget* target : work.Lost()) {
    if (target->outside) continue;
    wanted[{ExtensionOf(target->file.name), target->file.bytes}].emplace(
        target->file.xxh3_128.ToHex(), target);
  }
  std::set<std::string> extensions;
  for (const auto& [kind, targets] : wanted) extensions.insert(kind.first);
  std::vector<std::string> folders = {work.out};
  for (const RepairSource& source : work.sources) {
    if (!source.copy) folders.push_back(source.name);
  }
  for (const std::string& folder : folders) {
    const absl::StatusOr<std::vector<std::string>> names = ListFolder(folder);
    if (EndsTheRun(names.status())) return names.status();
    std::vector<std::string> paths;
    if (!names.ok()) paths.push_back(folder);  // a file that was named
    for (size_t i = 0; names.ok() && i < names->size(); ++i) {
      if (folder != work.out || !listed.contains((*names)[i]))
        paths.push_back(absl::StrCat(folder, "/", (*names)[i]));
    }
    for (const std::string& path : paths) {
      RETURN_IF_ERROR(work.CheckStop());
      const std::string extension = ExtensionOf(path);
      struct stat facts;
      if (!extensions.contains(extension) || ::stat(path.c_str(), &facts) != 0 ||
          !S_ISREG(facts.st_mode)) {
        continue;
      }
      const auto of_size = wanted.find({extension, static_cast<uint64_t>(facts.st_size)});
      if (of_size == wanted.end()) continue;
      const absl::StatusOr<Digest> digest = HashOf(work, path);
      if (EndsTheRun(digest.status())) return digest.status();
      if (!digest.ok()) continue;
      const auto found = of_size->second.find(digest->ToHex());
      if (found != of_size->second.end() && found->second->lost())
        RETURN_IF_ERROR(TakeWholeFile(work, *found->second, path, path));
    }
  }
  return absl::OkStatus();
}

absl::Status RebuildOtherFiles(RepairWork& work) {
  for (RepairTarget* target : work.Lost()) {
    if (target->file.name == kSha256Name) {
      RETURN_IF_ERROR(work.PublishBytes(*target, Sha256Lines(work.manifest), "the manifest"));
    } else if (target->file.name == kRecordOrderName) {
      RETURN_IF_ERROR(RebuildOrder(work, *target));
    }
  }
  return RebuildMadeFiles(work);
}

}  // namespace shardpack

// From other copies of the dataset, and from what is left of it.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "converters/planning/record_order.h"
#include "converters/publishing/commit.h"
#include "converters/repairing/repair_work.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr uint64_t kMaxOrderBytes = uint64_t{4} << 32;

// The status is that of OUT; what cannot be read of the copy is told by `unread`.
absl::Status StageCopy(const std::string& from, const RepairFolder& folder, absl::Status& unread) {
  const absl::StatusOr<File> in = File::OpenRead(from);
  unread = in.status();
  if (!in.ok()) return absl::OkStatus();
  ASSIGN_OR_RETURN(File out, folder.Create(kStagedName));
  std::vector<std::byte> block(1 << 20);
  for (uint64_t at = 0;;) {
    const absl::StatusOr<size_t> got = in->ReadAt(at, block);
    unread = got.status();
    if (!got.ok()) return absl::OkStatus();
    if (*got == 0) return out.Close();
    const Bytes part = std::span(block).first(*got);
    RETURN_IF_ERROR(out.Write(std::span(&part, 1)));
    at += *got;
  }
}

FieldFinder MakeFinder(const RepairWork& work) {
  std::vector<const DatasetCopy*> copies = {&work.own};
  std::vector<std::string> folders;
  for (const RepairSource& source : work.sources) {
    if (source.copy) copies.push_back(&*source.copy);
    if (!source.folder.empty()) folders.push_back(source.folder);
  }
  absl::StatusOr<std::vector<Sidecar>> sidecars = ParseSidecars(work.Option("sidecars"));
  return FieldFinder(std::move(copies), std::move(folders),
                     sidecars.ok() ? *std::move(sidecars) : std::vector<Sidecar>());
}

// What the shard was planned for counts, not what came of it; never more than the whole source.
void UsePlanned(const Manifest& manifest, const ManifestShard& shard, ShardSpec& spec) {
  for (const auto& [name, value] : shard.planned) {
    if (name == kPlannedRecords) spec.max_records = std::min(value, manifest.source_files);
    if (value > manifest.source_bytes) continue;
    for (FieldTotal& field : spec.fields) {
      if (name == absl::StrCat(std::string(kPlannedBytesOf), field.name)) field.max_bytes = value;
    }
  }
}

// Writes and publishes the shard of these rows.
absl::Status RebuildShard(RepairWork& work, RepairTarget& target, std::span<const RepairRow> rows,
                          const FieldFinder& finder, std::set<std::string> from) {
  ShardSpec spec = work.SpecOf(target.shard);
  DescribeRows(rows, work.layout.fixed_shape, spec);
  UsePlanned(work.manifest, work.manifest.shards[target.shard], spec);
  const std::string path = work.StagePath();
  absl::Status written = WriteShard(work.format, spec, rows, work.manifest.classes, finder,
                                    work.pool, path, work.stop, from);
  if (!written.ok()) {
    if (!IsOfOneFile(written)) return written;
    target.why_not.insert(std::string(written.message()));
    return absl::OkStatus();
  }
  return work.Publish(target, std::string(kStagedName), absl::StrJoin(from, ", "));
}

// A record of a copy.
struct Place {
  uint32_t shard = 0;
  uint64_t record = 0;
};

// What a copy says of the dataset's records.
class CopyRecords {
 public:
  explicit CopyRecords(const DatasetCopy& copy)
      : copy_(copy), made_json_(copy.manifest().options.contains("with-json")) {}

  // In the order of its plan; empty where an index of it is damaged.
  absl::StatusOr<std::vector<Place>> InOrder() const {
    std::vector<Place> places;
    const Manifest& manifest = copy_.manifest();
    for (uint32_t shard = 0; shard < manifest.shards.size(); ++shard) {
      if (copy_.index(shard) == nullptr) {
        return absl::DataLossError(
            absl::StrCat(EscapeForTerminal(copy_.path()), " has a damaged index itself"));
      }
      for (uint64_t record = 0; record < manifest.shards[shard].records; ++record)
        places.push_back({shard, record});
    }
    for (const FileEntry& file : manifest.files) {
      if (file.name != kRecordOrderName) continue;
      ASSIGN_OR_RETURN(std::string bytes, ReadWholeFile(copy_.PathOf(file.name), kMaxOrderBytes));
      if (Xxh3_128(AsBytes(bytes)) != file.xxh3_128)
        return absl::DataLossError("its order.u32 is damaged");
      ASSIGN_OR_RETURN(std::vector<uint32_t> order, ParseRecordOrder(bytes, places.size()));
      std::vector<Place> sorted(places.size());
      for (size_t i = 0; i < places.size(); ++i) sorted[order[i]] = places[i];
      return sorted;
    }
    return places;
  }

  const ShardIndex& index(Place at) const { return *copy_.index(at.shard); }
  std::string_view key(Place at) const { return index(at).key(at.record); }
  std::optional<RepairRow> Row(Place at) const { return RowOf(index(at), at.record, made_json_); }

 private:
  const DatasetCopy& copy_;
  const bool made_json_;
};

// The rows of a whole shard: its records in its order, found in the copy by key, or where the shard
// holds no keys by the image's hash.
class Recogniser : public RecordSink {
 public:
  Recogniser(const CopyRecords& copy, std::span<const Place> order) : copy_(copy) {
    for (const Place at : order) {
      by_key_.try_emplace(copy.key(at), at);
      const std::optional<size_t> image = copy.index(at).FindField(kImageField);
      if (image && copy.index(at).has_field(at.record, *image)) {
        by_hash_[copy.index(at).hash(at.record, *image)].push_back(at);
      }
    }
  }

  void OnRecord(const ScannedRecord& record) override {
    std::optional<Place> found;
    if (!record.key.empty()) {
      const auto known = by_key_.find(record.key);
      if (known != by_key_.end()) found = known->second;
    } else if (!record.fields.empty()) {
      const auto known = by_hash_.find(record.fields[0].hash);
      if (known != by_hash_.end()) {
        // Of equal images each is taken once, in the order of the plan, those of its label first.
        std::vector<Place>& equal = known->second;
        auto taken = std::find_if(equal.begin(), equal.end(), [&](Place at) {
          return copy_.index(at).label(at.record) == record.label;
        });
        if (taken == equal.end()) taken = equal.begin();
        if (taken != equal.end()) {
          found = *taken;
          equal.erase(taken);
        }
      }
    }
    std::optional<RepairRow> row = found ? copy_.Row(*found) : std::nullopt;
    if (row) rows_.push_back(*std::move(row));
    unknown_ += row ? 0 : 1;
  }

  absl::StatusOr<std::vector<RepairRow>> Scan(const RepairWork& work, uint32_t shard) {
    const auto taken_before = by_hash_;
    const auto begin = [&]() -> RecordSink& {
      rows_.clear();
      unknown_ = 0;
      by_hash_ = taken_before;
      return *this;
    };
    RETURN_IF_ERROR(ScanAlone(work.format, work.layout, work.own.DataPath(shard),
                              work.manifest.shards[shard].bytes, begin));
    if (unknown_ > 0)
      return absl::NotFoundError(absl::StrCat("the copy lacks ", unknown_, " of its samples"));
    return std::move(rows_);
  }

 private:
  const CopyRecords& copy_;
  absl::flat_hash_map<std::string_view, Place> by_key_;
  absl::flat_hash_map<uint64_t, std::vector<Place>> by_hash_;
  std::vector<RepairRow> rows_;
  uint64_t unknown_ = 0;
};

// The rows of the shards that have no index, from a copy in the order of the plan: those of its
// records that no index of ours has, in turn.
absl::StatusOr<std::map<uint32_t, std::vector<RepairRow>>> RowsLeftOver(
    RepairWork& work, const CopyRecords& copy, std::span<const Place> order,
    const Manifest& copied) {
  absl::flat_hash_set<std::string_view> known;
  std::map<std::string, std::vector<uint32_t>> shards;  // without an index, by split
  std::map<std::string, uint64_t> wanted;
  for (uint32_t n = 0; n < work.manifest.shards.size(); ++n) {
    const ShardIndex* index = work.own.index(n);
    const ManifestShard& shard = work.manifest.shards[n];
    if (index == nullptr) {
      shards[shard.split].push_back(n);
      wanted[shard.split] += shard.records;
      continue;
    }
    for (uint64_t record = 0; record < index->records(); ++record) known.insert(index->key(record));
  }
  std::map<std::string, std::vector<Place>> left;
  for (const Place at : order) {
    if (!known.contains(copy.key(at))) left[copied.shards[at.shard].split].push_back(at);
  }
  std::map<uint32_t, std::vector<RepairRow>> rows;
  for (const auto& [split, numbers] : shards) {
    const std::vector<Place>& places = left[split];
    if (places.size() != wanted[split]) {
      return absl::NotFoundError(absl::StrCat("the copy has ", places.size(),
                                              " samples that are in no other shard, ",
                                              wanted[split], " are missing"));
    }
    size_t next = 0;
    for (const uint32_t n : numbers) {
      const auto begin = places.begin() + static_cast<ptrdiff_t>(next);
      std::vector<Place> own(begin,
                             begin + static_cast<ptrdiff_t>(work.manifest.shards[n].records));
      next += own.size();
      if (work.layout.key_ordered) {
        std::sort(own.begin(), own.end(),
                  [&](Place a, Place b) { return copy.key(a) < copy.key(b); });
      }
      for (const Place at : own) {
        std::optional<RepairRow> row = copy.Row(at);
        if (!row) return absl::NotFoundError("the copy has samples without an image");
        rows[n].push_back(*std::move(row));
      }
    }
  }
  return rows;
}

void NumberRows(uint64_t first, std::vector<RepairRow>& rows) {
  for (RepairRow& row : rows) row.number = first++;
}

// The shard if it is lost, then its index, both of these rows.
absl::Status RebuildBoth(RepairWork& work, uint32_t n, std::vector<RepairRow>& rows,
                         const std::string& from) {
  NumberRows(work.FirstNumber(n), rows);
  if (RepairTarget* shard = work.LostShard(n); shard != nullptr) {
    FieldFinder finder = MakeFinder(work);
    for (const RepairRow& row : rows) {
      for (const RepairField& field : row.fields) finder.Want(field.hash);
    }
    finder.Locate();
    absl::Status rebuilt = RebuildShard(work, *shard, rows, finder, {from});
    if (!rebuilt.ok() || shard->lost()) return rebuilt;
    // Nobody has written the shard that its index would be made from.
    if (work.options.dry_run) {
      RepairTarget* index = work.LostIndex(n);
      return index == nullptr ? rebuilt : work.Publish(*index, "", from);
    }
  }
  RepairTarget* target = work.LostIndex(n);
  if (target == nullptr) return absl::OkStatus();
  absl::StatusOr<std::string> index = MakeIndex(work.format, work.layout, work.own.DataPath(n),
                                                work.manifest.shards[n].bytes, rows);
  if (index.ok()) return work.PublishBytes(*target, *index, from);
  if (!IsOfOneFile(index.status())) return index.status();
  target->why_not.insert(std::string(index.status().message()));
  return absl::OkStatus();
}

absl::Status RebuildByCopy(RepairWork& work, const DatasetCopy& from) {
  std::vector<uint32_t> lost;
  for (uint32_t n = 0; n < work.manifest.shards.size(); ++n) {
    if (work.LostIndex(n) != nullptr) lost.push_back(n);
  }
  const auto refuse = [&](uint32_t n, const absl::Status& status) {
    for (RepairTarget* target : {work.LostShard(n), work.LostIndex(n)}) {
      if (target != nullptr)
        target->why_not.insert(absl::StrCat(from.path(), ": ", std::string(status.message())));
    }
  };
  if (lost.empty()) return absl::OkStatus();
  const CopyRecords copy(from);
  const absl::StatusOr<std::vector<Place>> order =
      from.manifest().classes == work.manifest.classes
          ? copy.InOrder()
          : absl::FailedPreconditionError("it has other classes");
  if (!order.ok()) {
    for (const uint32_t n : lost) refuse(n, order.status());
    return absl::OkStatus();
  }
  std::optional<Recogniser> recogniser;
  for (const uint32_t n : lost) {
    if (work.LostShard(n) != nullptr) continue;
    if (!recogniser) recogniser.emplace(copy, *order);
    absl::StatusOr<std::vector<RepairRow>> rows = recogniser->Scan(work, n);
    if (!rows.ok()) {
      refuse(n, rows.status());
      continue;
    }
    RETURN_IF_ERROR(RebuildBoth(work, n, *rows, from.path()));
  }
  if (std::none_of(lost.begin(), lost.end(),
                   [&](uint32_t n) { return work.LostIndex(n) != nullptr; })) {
    return absl::OkStatus();
  }
  auto rows = RowsLeftOver(work, copy, *order, from.manifest());
  for (const uint32_t n : lost) {
    if (!rows.ok()) {
      refuse(n, rows.status());
    } else if (work.LostIndex(n) != nullptr && rows->contains(n)) {
      RETURN_IF_ERROR(RebuildBoth(work, n, (*rows)[n], from.path()));
    }
  }
  return absl::OkStatus();
}

// The place in the plan's order of each record, when a copy stands in that order.
absl::StatusOr<std::string> OrderByCopy(const RepairWork& work, const DatasetCopy& from) {
  const CopyRecords copy(from);
  ASSIGN_OR_RETURN(const std::vector<Place> order, copy.InOrder());
  absl::flat_hash_map<std::string_view, uint32_t> places;
  for (const Place at : order)
    places.try_emplace(copy.key(at), static_cast<uint32_t>(places.size()));
  std::string bytes;
  for (uint32_t n = 0; n < work.manifest.shards.size(); ++n) {
    const ShardIndex* index = work.own.index(n);
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

bool AnyShardLost(const RepairWork& work) {
  return std::any_of(work.targets.begin(), work.targets.end(), [](const RepairTarget& target) {
    return target.lost() && target.kind == RepairTarget::Kind::kShard;
  });
}

// What the format makes of shards and indexes that are whole.
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
  if (work.options.dry_run) {  // shards and a folder for their work are not there yet
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
    const ShardIndex* index = work.own.index(n);
    if (index == nullptr) return absl::OkStatus();  // not asked for, and damaged
    indexes.push_back(*index);
  }
  const std::string scratch = work.folder->StagePath("");
  const SidecarInput input{work.out, work.manifest, indexes, scratch};
  for (const FileMaker make : *makers) {
    if (work.Lost().empty()) break;
    absl::StatusOr<std::vector<NamedBytes>> files = make(input);
    // A shard that could not be rebuilt may be one that cannot be read.
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
      const std::string path = source.copy->PathOf(found->second->name);
      const absl::StatusOr<std::string> damage = DamageOf(path, target->file, true, nullptr);
      if (damage.ok() && !damage->empty()) continue;
      absl::Status unread = damage.status();
      if (unread.ok() && !work.options.dry_run)
        RETURN_IF_ERROR(StageCopy(path, *work.folder, unread));
      if (!unread.ok()) {
        target->why_not.insert(std::string(unread.message()));
        continue;
      }
      RETURN_IF_ERROR(work.Publish(*target, std::string(kStagedName), source.name));
    }
  }
  return absl::OkStatus();
}

absl::Status RebuildByIndex(RepairWork& work) {
  if (work.manifest.adopted()) return absl::OkStatus();
  FieldFinder finder = MakeFinder(work);
  std::vector<RepairTarget*> targets;
  for (RepairTarget* target : work.Lost()) {
    const bool shard = target->kind == RepairTarget::Kind::kShard;
    const ShardIndex* index = shard ? work.own.index(target->shard) : nullptr;
    if (index == nullptr) continue;
    targets.push_back(target);
    for (size_t field = 0; field < index->fields(); ++field) {
      for (uint64_t record = 0; record < index->records(); ++record) {
        if (index->has_field(record, field)) finder.Want(index->hash(record, field));
      }
    }
  }
  if (targets.empty()) return absl::OkStatus();
  finder.Locate();
  for (RepairTarget* target : targets) {
    const ShardIndex& index = *work.own.index(target->shard);
    std::vector<RepairRow> rows;
    for (uint64_t record = 0; record < index.records(); ++record) {
      std::optional<RepairRow> row = RowOf(index, record, work.made_json());
      if (row) rows.push_back(*std::move(row));
    }
    if (rows.size() != index.records()) continue;
    NumberRows(work.FirstNumber(target->shard), rows);
    RETURN_IF_ERROR(RebuildShard(work, *target, rows, finder, {}));
  }
  return absl::OkStatus();
}

absl::Status RebuildByCopies(RepairWork& work) {
  if (work.manifest.adopted()) return absl::OkStatus();
  for (const RepairSource& source : work.sources) {
    if (!source.copy) continue;
    RETURN_IF_ERROR(RebuildByCopy(work, *source.copy));
  }
  return absl::OkStatus();
}

absl::Status RebuildOtherFiles(RepairWork& work) {
  for (RepairTarget* target : work.Lost()) {
    absl::Status published;
    if (target->file.name == kSha256Name) {
      published = work.PublishBytes(*target, Sha256Lines(work.manifest), "the manifest");
    } else if (target->file.name == kRecordOrderName) {
      for (const RepairSource& source : work.sources) {
        if (!source.copy || !target->lost()) continue;
        const absl::StatusOr<std::string> bytes = OrderByCopy(work, *source.copy);
        if (!bytes.ok() && work.options.dry_run && CopyRecords(*source.copy).InOrder().ok()) {
          published =
              work.Publish(*target, "", source.name);  // an index that it takes is not there yet
        } else if (bytes.ok()) {
          published = work.PublishBytes(*target, *bytes, source.name);
          if (!published.ok()) break;
        }
      }
    }
    if (!published.ok()) return published;
  }
  return RebuildMadeFiles(work);
}

}  // namespace shardpack

// Rebuilds shards and indexes from other copies of the dataset, and from what is left of it.
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
#include "converters/repairing/copy_records.h"
#include "converters/repairing/repair_work.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

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

// Uses the values that the shard was planned with, not the actual ones; never more than the whole
// source.
void UsePlanned(const Manifest& manifest, const ManifestShard& shard, ShardSpec& spec) {
  for (const auto& [name, value] : shard.planned) {
    if (name == kPlannedRecords) spec.max_records = std::min(value, manifest.source_files);
    if (value > manifest.source_bytes) continue;
    for (FieldTotal& field : spec.fields) {
      if (name == absl::StrCat(std::string(kPlannedBytesOf), field.name)) field.max_bytes = value;
    }
  }
}

// Writes and publishes the shard made of these rows.
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

// The rows of an intact shard: its records in order, found in the copy by key, or by the image's
// hash if the shard has no keys.
class Recogniser : public RecordSink {
 public:
  Recogniser(const CopyRecords& copy, std::span<const RecordPlace> order) : copy_(copy) {
    for (const RecordPlace at : order) {
      by_key_.try_emplace(copy.key(at), at);
      const std::optional<size_t> image = copy.index(at).FindField(kImageField);
      if (image && copy.index(at).has_field(at.record, *image)) {
        by_hash_[copy.index(at).hash(at.record, *image)].push_back({at});
      }
    }
  }

  void OnRecord(const ScannedRecord& record) override {
    std::optional<RecordPlace> found;
    if (!record.key.empty()) {
      const auto known = by_key_.find(record.key);
      if (known != by_key_.end()) found = known->second;
    } else if (!record.fields.empty()) {
      const auto known = by_hash_.find(record.fields[0].hash);
      if (known != by_hash_.end()) {
        // Each of several equal images is used once, in plan order, first those with the record's
        // label.
        Candidate* next = nullptr;
        for (Candidate& each : known->second) {
          if (each.taken) continue;
          const bool same_label = copy_.index(each.at).label(each.at.record) == record.label;
          if (next == nullptr || same_label) next = &each;
          if (same_label) break;
        }
        if (next != nullptr) {
          next->taken = true;
          taken_.push_back(next);
          found = next->at;
        }
      }
    }
    std::optional<RepairRow> row = found ? copy_.Row(*found) : std::nullopt;
    if (row) rows_.push_back(*std::move(row));
    unknown_ += row ? 0 : 1;
  }

  absl::StatusOr<std::vector<RepairRow>> Scan(const RepairWork& work, uint32_t shard) {
    const auto begin = [&]() -> RecordSink& {
      rows_.clear();
      unknown_ = 0;
      GiveBack();
      return *this;
    };
    absl::Status scanned = ScanAlone(work.format, work.layout, work.own.DataPath(shard),
                                     work.manifest.shards[shard].bytes, work.stop, begin);
    if (scanned.ok() && unknown_ > 0) {
      scanned = absl::NotFoundError(absl::StrCat("the copy lacks ", unknown_, " of its samples"));
    }
    if (!scanned.ok()) {
      GiveBack();
      return scanned;
    }
    taken_.clear();  // they belong to this shard
    return std::move(rows_);
  }

 private:
  struct Candidate {
    RecordPlace at;
    bool taken = false;
  };

  // Makes what the scan has taken available to the next one.
  void GiveBack() {
    for (Candidate* candidate : taken_) candidate->taken = false;
    taken_.clear();
  }

  const CopyRecords& copy_;
  absl::flat_hash_map<std::string_view, RecordPlace> by_key_;
  absl::flat_hash_map<uint64_t, std::vector<Candidate>> by_hash_;
  std::vector<Candidate*> taken_;  // by this scan
  std::vector<RepairRow> rows_;
  uint64_t unknown_ = 0;
};

// Rows of the shards that have no index, from a copy in plan order: the records that are in none of
// our indexes, in order.
absl::StatusOr<std::map<uint32_t, std::vector<RepairRow>>> RowsLeftOver(
    RepairWork& work, const CopyRecords& copy, std::span<const RecordPlace> order,
    const Manifest& copied) {
  absl::flat_hash_set<std::string_view> known;
  std::map<std::string, std::vector<uint32_t>> shards;  // without an index, by split
  std::map<std::string, uint64_t> wanted;
  for (uint32_t n = 0; n < work.manifest.shards.size(); ++n) {
    ASSIGN_OR_RETURN(const ShardIndex* index, work.OwnIndex(n));
    const ManifestShard& shard = work.manifest.shards[n];
    if (index == nullptr) {
      shards[shard.split].push_back(n);
      wanted[shard.split] += shard.records;
      continue;
    }
    for (uint64_t record = 0; record < index->records(); ++record) known.insert(index->key(record));
  }
  std::map<std::string, std::vector<RecordPlace>> left;
  for (const RecordPlace at : order) {
    if (!known.contains(copy.key(at))) left[copied.shards[at.shard].split].push_back(at);
  }
  std::map<uint32_t, std::vector<RepairRow>> rows;
  for (const auto& [split, numbers] : shards) {
    const std::vector<RecordPlace>& places = left[split];
    if (places.size() != wanted[split]) {
      return absl::NotFoundError(absl::StrCat("the copy has ", places.size(),
                                              " samples that are in no other shard, ",
                                              wanted[split], " are missing"));
    }
    size_t next = 0;
    for (const uint32_t n : numbers) {
      const auto begin = places.begin() + static_cast<ptrdiff_t>(next);
      std::vector<RecordPlace> own(begin,
                                   begin + static_cast<ptrdiff_t>(work.manifest.shards[n].records));
      next += own.size();
      if (work.layout.key_ordered) {
        std::sort(own.begin(), own.end(),
                  [&](RecordPlace a, RecordPlace b) { return copy.key(a) < copy.key(b); });
      }
      for (const RecordPlace at : own) {
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

// Rebuilds the index of an existing shard from these rows.
absl::Status RebuildIndex(RepairWork& work, uint32_t n, std::span<const RepairRow> rows,
                          const std::string& from) {
  RepairTarget* target = work.LostIndex(n);
  if (target == nullptr) return absl::OkStatus();
  absl::StatusOr<std::string> index = MakeIndex(work.format, work.layout, work.own.DataPath(n),
                                                work.manifest.shards[n].bytes, rows, work.stop);
  if (index.ok()) return work.PublishBytes(*target, *index, from);
  if (!IsOfOneFile(index.status())) return index.status();
  target->why_not.insert(std::string(index.status().message()));
  return absl::OkStatus();
}

// Rebuilds the shard, if it is lost, and then its index from these rows.
absl::Status RebuildBoth(RepairWork& work, uint32_t n, std::span<const RepairRow> rows,
                         const FieldFinder& finder, const std::string& from) {
  if (RepairTarget* shard = work.LostShard(n); shard != nullptr) {
    absl::Status rebuilt = RebuildShard(work, *shard, rows, finder, {from});
    if (!rebuilt.ok() || shard->lost()) return rebuilt;
    // The shard that its index would be made from was not written.
    if (work.options.dry_run) {
      RepairTarget* index = work.LostIndex(n);
      return index == nullptr ? rebuilt : work.Publish(*index, "", from);
    }
  }
  return RebuildIndex(work, n, rows, from);
}

// Rebuilds the shards without an index from the rows that are left over.
absl::Status RebuildAllBoth(RepairWork& work, std::map<uint32_t, std::vector<RepairRow>>& rows,
                            const std::string& from) {
  FieldFinder finder = MakeFinder(work);
  bool wanted = false;
  for (auto& [n, shard_rows] : rows) {
    NumberRows(work.FirstNumber(n), shard_rows);
    if (work.LostShard(n) == nullptr) continue;
    wanted = true;
    for (const RepairRow& row : shard_rows) {
      for (const RepairField& field : row.fields) finder.Want(field.hash);
    }
  }
  if (wanted) RETURN_IF_ERROR(finder.Locate());
  for (const auto& [n, shard_rows] : rows) {
    if (work.LostIndex(n) == nullptr) continue;
    RETURN_IF_ERROR(RebuildBoth(work, n, shard_rows, finder, from));
  }
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
  CopyRecords copy(from);
  const absl::StatusOr<std::vector<RecordPlace>> order =
      from.manifest().classes == work.manifest.classes
          ? copy.InOrder()
          : absl::FailedPreconditionError("it has other classes");
  if (EndsTheRun(order.status())) return order.status();
  if (!order.ok()) {
    for (const uint32_t n : lost) refuse(n, order.status());
    return absl::OkStatus();
  }
  std::optional<Recogniser> recogniser;
  for (const uint32_t n : lost) {
    if (work.LostShard(n) != nullptr) continue;
    if (!recogniser) recogniser.emplace(copy, *order);
    absl::StatusOr<std::vector<RepairRow>> rows = recogniser->Scan(work, n);
    if (EndsTheRun(rows.status())) return rows.status();
    if (!rows.ok()) {
      refuse(n, rows.status());
      continue;
    }
    NumberRows(work.FirstNumber(n), *rows);
    RETURN_IF_ERROR(RebuildIndex(work, n, *rows, from.path()));
  }
  if (std::none_of(lost.begin(), lost.end(),
                   [&](uint32_t n) { return work.LostIndex(n) != nullptr; })) {
    return absl::OkStatus();
  }
  auto rows = RowsLeftOver(work, copy, *order, from.manifest());
  if (rows.ok()) return RebuildAllBoth(work, *rows, from.path());
  if (EndsTheRun(rows.status())) return rows.status();
  for (const uint32_t n : lost) refuse(n, rows.status());
  return absl::OkStatus();
}

}  // namespace

absl::Status RebuildByIndex(RepairWork& work) {
  if (work.manifest.indexed_in_place()) return absl::OkStatus();
  FieldFinder finder = MakeFinder(work);
  std::vector<std::pair<RepairTarget*, const ShardIndex*>> targets;
  for (RepairTarget* target : work.Lost()) {
    if (target->kind != RepairTarget::Kind::kShard) continue;
    ASSIGN_OR_RETURN(const ShardIndex* index, work.OwnIndex(target->shard));
    if (index == nullptr) continue;
    targets.emplace_back(target, index);
    for (size_t field = 0; field < index->fields(); ++field) {
      for (uint64_t record = 0; record < index->records(); ++record) {
        if (index->has_field(record, field)) finder.Want(index->hash(record, field));
      }
    }
  }
  if (targets.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(finder.Locate());
  for (const auto& [target, index] : targets) {
    std::vector<RepairRow> rows;
    for (uint64_t record = 0; record < index->records(); ++record) {
      std::optional<RepairRow> row = RowOf(*index, record, work.made_json());
      if (row) rows.push_back(*std::move(row));
    }
    if (rows.size() != index->records()) continue;
    NumberRows(work.FirstNumber(target->shard), rows);
    RETURN_IF_ERROR(RebuildShard(work, *target, rows, finder, {}));
  }
  return absl::OkStatus();
}

absl::Status RebuildByCopies(RepairWork& work) {
  if (work.manifest.indexed_in_place()) return absl::OkStatus();
  for (const RepairSource& source : work.sources) {
    if (!source.copy) continue;
    RETURN_IF_ERROR(RebuildByCopy(work, *source.copy));
  }
  return absl::OkStatus();
}

}  // namespace shardpack

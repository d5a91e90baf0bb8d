#include "readers/shard_table.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace shardpack {

ShardTable::ShardTable(Dataset dataset, std::vector<std::string> fields)
    : dataset_(std::move(dataset)), fields_(std::move(fields)), open_(dataset_.shards().size()) {
  first_ids_.reserve(dataset_.shards().size());
  for (const DatasetShard& shard : dataset_.shards()) first_ids_.push_back(shard.first_id);
}

SampleLocation ShardTable::Locate(uint64_t id) const {
  // The last shard that begins at or before it: past shards without records.
  const auto after = std::upper_bound(first_ids_.begin(), first_ids_.end(), id);
  const auto shard = static_cast<size_t>(after - first_ids_.begin()) - 1;
  return {static_cast<uint32_t>(shard), id - first_ids_[shard]};
}

absl::StatusOr<const ShardTable::Shard*> ShardTable::Get(uint32_t shard) const {
  if (const Shard* open = open_[shard].load(std::memory_order_acquire)) return open;
  absl::StatusOr<const ShardIndex*> index = dataset_.BorrowIndex(shard);
  if (!index.ok()) return index.status();
  Shard made{*index, {}};
  for (const std::string& field : fields_) {
    size_t column = 0;
    while (column < (*index)->fields() && (*index)->field_name(column) != field) ++column;
    made.columns.push_back(column < (*index)->fields() ? column : kNoColumn);
  }
  const std::lock_guard lock(mutex_);
  if (const Shard* open = open_[shard].load(std::memory_order_acquire)) return open;
  shards_.push_back(std::move(made));
  open_[shard].store(&shards_.back(), std::memory_order_release);
  return &shards_.back();
}

std::string ShardTable::Describe(uint64_t id) const {
  const SampleLocation at = Locate(id);
  const absl::StatusOr<const Shard*> shard = Get(at.shard);
  return absl::StrCat(EscapeForTerminal(dataset_.shards()[at.shard].name), " record ", at.record,
                      shard.ok() ? " key " : "",
                      shard.ok() ? EscapeForTerminal((*shard)->index->key(at.record)) : "");
}

absl::Status ShardTable::CheckFields() const {
  std::vector<bool> found(fields_.size(), false);
  std::set<std::string> names;
  for (uint32_t s = 0; s < open_.size(); ++s) {
    const absl::StatusOr<const Shard*> shard = Get(s);
    if (!shard.ok()) return shard.status();
    for (size_t f = 0; f < fields_.size(); ++f) {
      if ((*shard)->columns[f] != kNoColumn) found[f] = true;
    }
    if (std::find(found.begin(), found.end(), false) == found.end()) return absl::OkStatus();
    for (size_t c = 0; c < (*shard)->index->fields(); ++c)
      names.emplace((*shard)->index->field_name(c));
  }
  const auto missing = std::find(found.begin(), found.end(), false) - found.begin();
  std::string known;
  for (const std::string& name : names) absl::StrAppend(&known, known.empty() ? "" : ", ", name);
  return absl::InvalidArgumentError(absl::StrCat(
      "no sample has a field ", EscapeForTerminal(fields_[static_cast<size_t>(missing)]),
      "; the fields are ", EscapeForTerminal(known)));
}

}  // namespace shardpack

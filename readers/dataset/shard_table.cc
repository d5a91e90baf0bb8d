#include "readers/dataset/shard_table.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "formats/io/status_macros.h"

namespace shardpack {

ShardTable::ShardTable(Dataset dataset, std::vector<std::string> fields)
    : dataset_(std::move(dataset)), fields_(std::move(fields)), open_(dataset_.shards().size()) {}

absl::StatusOr<const ShardTable::Shard*> ShardTable::Get(uint32_t shard) const {
  if (const Shard* open = open_[shard].load(std::memory_order_acquire)) return open;
  ASSIGN_OR_RETURN(const ShardIndex* index, dataset_.BorrowIndex(shard));
  Shard made{index, {}};
  for (const std::string& field : fields_) {
    made.columns.push_back(index->FindField(field).value_or(kNoColumn));
  }
  const std::lock_guard lock(mutex_);
  if (const Shard* open = open_[shard].load(std::memory_order_acquire)) return open;
  shards_.push_back(std::move(made));
  open_[shard].store(&shards_.back(), std::memory_order_release);
  return &shards_.back();
}

std::string ShardTable::Describe(uint64_t id) const {
  const SampleLocation at = dataset_.Locate(id);
  const absl::StatusOr<const Shard*> shard = Get(at.shard);
  return absl::StrCat(EscapeForTerminal(dataset_.shards()[at.shard].name), " record ", at.record,
                      shard.ok() ? " key " : "",
                      shard.ok() ? EscapeForTerminal((*shard)->index->key(at.record)) : "");
}

ErrorFacts ShardTable::Facts(uint64_t id) const {
  const SampleLocation at = dataset_.Locate(id);
  const DatasetShard& row = dataset_.shards()[at.shard];
  const absl::StatusOr<const Shard*> shard = Get(at.shard);
  return {.path = row.data_path,
          .shard = row.name,
          .key = shard.ok() ? std::string((*shard)->index->key(at.record)) : "",
          .record = static_cast<int64_t>(at.record),
          .id = static_cast<int64_t>(id)};
}

absl::Status ShardTable::CheckFields() const {
  std::vector<bool> found(fields_.size(), false);
  std::set<std::string> names;
  for (uint32_t s = 0; s < open_.size(); ++s) {
    ASSIGN_OR_RETURN(const Shard* const shard, Get(s));
    for (size_t f = 0; f < fields_.size(); ++f) {
      if (shard->columns[f] != kNoColumn) found[f] = true;
    }
    if (std::find(found.begin(), found.end(), false) == found.end()) return absl::OkStatus();
    for (size_t c = 0; c < shard->index->fields(); ++c) names.emplace(shard->index->field_name(c));
  }
  const auto missing = std::find(found.begin(), found.end(), false) - found.begin();
  return absl::InvalidArgumentError(absl::StrCat(
      "no sample has a field ", EscapeForTerminal(fields_[static_cast<size_t>(missing)]),
      "; the fields are ", EscapeForTerminal(absl::StrJoin(names, ", "))));
}

}  // namespace shardpack

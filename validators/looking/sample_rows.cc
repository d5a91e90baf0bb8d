#include "validators/looking/sample_rows.h"

#include <algorithm>

#include "formats/core/class_name.h"
#include "formats/core/sample.h"
#include "formats/io/status_macros.h"

namespace shardpack {

SampleRows::SampleRows(std::span<const Dataset> datasets)
    : datasets_(datasets.begin(), datasets.end()), first_({0}) {
  for (const Dataset& dataset : datasets_) first_.push_back(first_.back() + dataset.size());
}

size_t SampleRows::DatasetOf(uint64_t row) const {
  // Datasets without samples are skipped.
  return static_cast<size_t>(std::upper_bound(first_.begin(), first_.end(), row) - first_.begin()) -
         1;
}

SampleLocation SampleRows::Locate(uint64_t row) const {
  const size_t dataset = DatasetOf(row);
  return datasets_[dataset].Locate(row - first_[dataset]);
}

absl::StatusOr<RowFacts> SampleRows::Facts(uint64_t row) const {
  RowFacts facts;
  facts.dataset = DatasetOf(row);
  const Dataset& dataset = datasets_[facts.dataset];
  facts.at = dataset.Locate(row - first_[facts.dataset]);
  ASSIGN_OR_RETURN(const ShardIndex* const index, dataset.BorrowIndex(facts.at.shard));
  const uint64_t record = facts.at.record;
  const DatasetShard& shard = dataset.shards()[facts.at.shard];
  facts.shard = shard.name;
  facts.split = shard.split;
  facts.key = std::string(index->key(record));
  facts.source_path = std::string(index->source_path(record));
  facts.label = index->label(record);
  facts.class_name = ClassName(dataset.classes(), facts.label);
  facts.image = index->image(record);
  facts.field = index->FindField(kImageField);
  if (facts.field && !index->has_field(record, *facts.field)) facts.field.reset();
  if (facts.field) {
    facts.bytes = index->field(record, *facts.field).length;
    facts.hash = index->hash(record, *facts.field);
  }
  return facts;
}

}  // namespace shardpack

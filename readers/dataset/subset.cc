#include "readers/dataset/subset.h"

#include <utility>

#include "formats/io/status_macros.h"

namespace shardpack {

absl::StatusOr<std::shared_ptr<const std::vector<uint64_t>>> SelectSamples(
    const Dataset& dataset, const SamplePredicate& keep) {
  std::vector<uint64_t> ids;
  for (uint64_t id = 0; dataset.is_selection() && id < dataset.size(); ++id) {
    const SampleLocation at = dataset.Locate(id);
    ASSIGN_OR_RETURN(const ShardIndex* const index, dataset.BorrowIndex(at.shard));
    if (keep(dataset.shards()[at.shard], *index, at.record)) ids.push_back(id);
  }
  if (dataset.is_selection()) return std::make_shared<const std::vector<uint64_t>>(std::move(ids));
  for (uint32_t s = 0; s < dataset.shards().size(); ++s) {
    const DatasetShard& shard = dataset.shards()[s];
    ASSIGN_OR_RETURN(const ShardIndex index, dataset.index(s));
    for (uint64_t record = 0; record < index.records(); ++record) {
      if (keep(shard, index, record)) ids.push_back(shard.first_id + record);
    }
  }
  return std::make_shared<const std::vector<uint64_t>>(std::move(ids));
}

}  // namespace shardpack

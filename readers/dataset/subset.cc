#include "readers/dataset/subset.h"

#include <utility>

#include "formats/io/status_macros.h"

namespace shardpack {

absl::StatusOr<std::shared_ptr<const std::vector<uint64_t>>> SelectSamples(
    const Dataset& dataset, const SamplePredicate& keep) {
  std::vector<uint64_t> ids;
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

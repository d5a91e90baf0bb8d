#include "validators/looking/shard_loop.h"

#include <tbb/parallel_for.h>

#include <utility>
#include <vector>

namespace shardpack {

absl::Status ForEachShard(
    const Dataset& dataset,
    const std::function<absl::Status(uint32_t shard, const ShardIndex& index)>& visit) {
  std::vector<absl::Status> results(dataset.shards().size());
  tbb::parallel_for(size_t{0}, results.size(), [&](size_t n) {
    const auto shard = static_cast<uint32_t>(n);
    const absl::StatusOr<const ShardIndex*> index = dataset.BorrowIndex(shard);
    results[n] = index.ok() ? visit(shard, **index) : index.status();
  });
  for (absl::Status& result : results) {
    if (!result.ok()) return std::move(result);
  }
  return absl::OkStatus();
}

}  // namespace shardpack

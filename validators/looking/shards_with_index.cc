#include "validators/looking/shards_with_index.h"

#include <cstdint>

#include "absl/status/status.h"
#include "formats/core/shard_index.h"
#include "formats/io/status_macros.h"
#include "validators/looking/shard_loop.h"

namespace shardpack {

absl::StatusOr<Dataset> ShardsWithIndex(const Dataset& dataset,
                                        std::vector<std::string>& not_looked_at) {
  const auto nothing = [](uint32_t, const ShardIndex&) { return absl::OkStatus(); };
  if (ForEachShard(dataset, nothing).ok()) return dataset;
  std::vector<uint32_t> left;
  for (uint32_t shard = 0; shard < dataset.shards().size(); ++shard) {
    const absl::Status opened = dataset.BorrowIndex(shard).status();
    if (absl::IsFailedPrecondition(opened)) return opened;
    if (opened.ok()) {
      left.push_back(shard);
    } else {
      not_looked_at.emplace_back(opened.message());
    }
  }
  return dataset.WithShards(left);
}

}  // namespace shardpack

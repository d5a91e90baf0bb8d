#include "validators/looking/shards_with_index.h"

#include <cstdint>
#include <set>

#include "absl/status/status.h"
#include "formats/core/manifest.h"
#include "formats/core/shard_index.h"
#include "formats/io/status_macros.h"
#include "validators/looking/shard_loop.h"

namespace shardpack {

std::vector<std::string> Reasons(const std::vector<DamagedFile>& files) {
  std::vector<std::string> reasons;
  for (const DamagedFile& file : files) reasons.push_back(file.why);
  return reasons;
}

absl::StatusOr<Dataset> ShardsWithIndex(const Dataset& dataset, DatasetDamage& damage) {
  const auto nothing = [](uint32_t, const ShardIndex&) { return absl::OkStatus(); };
  if (ForEachShard(dataset, nothing).ok()) return dataset;
  std::vector<uint32_t> left;
  std::set<std::string> indexes;  // that are named in not_looked_at
  for (uint32_t shard = 0; shard < dataset.shards().size(); ++shard) {
    const absl::Status opened = dataset.BorrowIndex(shard).status();
    if (absl::IsFailedPrecondition(opened)) return opened;
    if (opened.ok()) {
      left.push_back(shard);
    } else {
      damage.not_looked_at.emplace_back(opened.message());
      if (dataset.manifest() != nullptr)
        indexes.insert(dataset.manifest()->shards[shard].index.name);
    }
  }
  std::erase_if(damage.files, [&](const DamagedFile& file) { return indexes.contains(file.name); });
  return dataset.WithShards(left);
}

}  // namespace shardpack

// SelectSamples: the ids of the samples whose index entry satisfies a predicate, for
// OrderSpec::subset.
//
//   const auto keep = [](const DatasetShard& shard, const ShardIndex& index, uint64_t record) {
//     return shard.split == "train" && index.label(record) >= 10;
//   };
//   auto subset = SelectSamples(dataset, keep);
//   auto order = Order::Make({.samples = dataset.size(), .subset = *subset});
//
// Ids ascend. Reads every index once and no samples. Memory: eight bytes per selected sample.
//
// Lifetime: the list owns its ids.
// Thread-safety: any thread; `keep` runs on the caller's thread.
// Errors: those of Dataset::index().
// Units: an id is a sample's number over all shards.
#ifndef SHARDPACK_READERS_DATASET_SUBSET_H_
#define SHARDPACK_READERS_DATASET_SUBSET_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/core/shard_index.h"
#include "readers/dataset/dataset.h"

namespace shardpack {

using SamplePredicate =
    std::function<bool(const DatasetShard& shard, const ShardIndex& index, uint64_t record)>;

absl::StatusOr<std::shared_ptr<const std::vector<uint64_t>>> SelectSamples(
    const Dataset& dataset, const SamplePredicate& keep);

}  // namespace shardpack

#endif  // SHARDPACK_READERS_DATASET_SUBSET_H_

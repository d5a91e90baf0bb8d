// SelectSamples: the ids of the samples that fulfil a condition on the index, for
// OrderSpec::subset.
//
//   const auto keep = [](const DatasetShard& shard, const ShardIndex& index, uint64_t record) {
//     return shard.split == "train" && index.label(record) >= 10;
//   };
//   auto subset = SelectSamples(dataset, keep);
//   auto order = Order::Make({.samples = dataset.size(), .subset = *subset});
//
// Ids ascend. No sample is read; every index is, once. Eight bytes a selected sample.
//
// Lifetime: the list owns its ids.
// Thread-safety: any thread; `keep` is called by the caller's.
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

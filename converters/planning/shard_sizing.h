// Shard sizing: decides where to cut a sequence of samples into shards.
//
//   std::vector<uint64_t> sums = {0, 10, 25, 30};            // container bytes up to each sample
//   std::vector<uint64_t> ends = CutByBytes(sums, 25);       // {2, 3}: shard n ends there
//   std::vector<uint64_t> even = CutEvenly(/*samples=*/10, /*shards=*/3);  // {4, 7, 10}
//
// Units: bytes; positions.
#ifndef SHARDPACK_CONVERTERS_PLANNING_SHARD_SIZING_H_
#define SHARDPACK_CONVERTERS_PLANNING_SHARD_SIZING_H_

#include <cstdint>
#include <span>
#include <vector>

namespace shardpack {

// `sums` has one more value than there are samples, ascending from sums[0]. Makes as few shards as
// the capacity allows, all about equally large, without a tiny last one. Only a shard of a single
// sample may exceed the capacity.
std::vector<uint64_t> CutByBytes(std::span<const uint64_t> sums, uint64_t capacity_bytes);

// The default capacity: 256 MB, and less for a small dataset, so that it has about eight shards
// (each loader worker needs some) as long as they keep 8 MB. Excludes the overhead of a shard, as
// `sums` does.
uint64_t AutomaticCapacity(std::span<const uint64_t> sums, uint64_t overhead_bytes);

// Sizes differ by one sample at most, the larger ones first. 0 < shards <= samples.
std::vector<uint64_t> CutEvenly(uint64_t samples, uint64_t shards);

// The number of `shards` that each group gets: at least one, otherwise by weight. shards >=
// weights.size().
std::vector<uint64_t> DivideShards(uint64_t shards, std::span<const uint64_t> weights);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PLANNING_SHARD_SIZING_H_

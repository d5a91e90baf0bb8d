// ForEachShard: calls a function for every shard of a dataset, with its index, on all cores.
//
//   absl::Status looked = ForEachShard(dataset, [&](uint32_t shard, const ShardIndex& index) {
//     counts[shard] = index.records();
//     return absl::OkStatus();
//   });
//
// Lifetime: an index is valid as long as one copy of the dataset exists.
// Thread-safety: the function is called from several threads, each time for another shard.
// Errors: the first in the order of the shards: that of opening the index, or of the function.
#ifndef SHARDPACK_VALIDATORS_LOOKING_SHARD_LOOP_H_
#define SHARDPACK_VALIDATORS_LOOKING_SHARD_LOOP_H_

#include <cstdint>
#include <functional>
#include <span>

#include "absl/status/status.h"
#include "formats/core/index_columns.h"
#include "formats/core/shard_index.h"
#include "readers/dataset/dataset.h"

namespace shardpack {

absl::Status ForEachShard(
    const Dataset& dataset,
    const std::function<absl::Status(uint32_t shard, const ShardIndex& index)>& visit);

// The column as numbers; valid as long as the index. T has the size of the column's items.
template <typename T>
std::span<const T> NumbersOf(const ShardIndex& index, IndexColumn column, size_t field = 0) {
  const Bytes bytes = ColumnOf(index, column, field);
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

// The value of the column kOffsets for a record without the field.
inline constexpr uint64_t kNoField = ~uint64_t{0};

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_LOOKING_SHARD_LOOP_H_

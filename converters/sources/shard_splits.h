// SplitsOfShardNames: finds splits in the names of shards, when nothing else gives them.
//
//   SplitOfShardName("val-000000.tar");                          // "val"
//   SplitOfShardName("mnist-train.tfrecord-00000-of-00001");     // "train", as in TFDS
//   ShardSplits told = SplitsOfShardNames({"train-0.tar", "val-0.tar"});
//
// Thread-safety: pure.
#ifndef SHARDPACK_CONVERTERS_SOURCES_SHARD_SPLITS_H_
#define SHARDPACK_CONVERTERS_SOURCES_SHARD_SPLITS_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardpack {

inline constexpr std::string_view kOneSplit = "train";  // as in pack build
inline constexpr std::string_view kSplitsDiffer =
    "some names of shards tell a split and some do not, so that all are in the split train";

struct ShardSplits {
  std::vector<std::string> splits;  // one per name; empty unless all names contain one
  bool differ = false;              // some names contain one and some do not
};
// Takes file names, without folders.
ShardSplits SplitsOfShardNames(std::span<const std::string> names);

// The split at the beginning of a shard's name, or where TensorFlow Datasets puts it
// (NAME-SPLIT.FORMAT-00000-of-00001); "" for none.
std::string_view SplitOfShardName(std::string_view name);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_SHARD_SPLITS_H_

// ShardWarnings: warnings about foreign shards, the first few of each kind, so that many of one
// kind do not hide another.
//
//   ShardWarnings warnings;
//   for (const ForeignShard& shard : shards) warnings.Add(shard.warnings);
//   for (const std::string& text : warnings.Texts()) ...
//
// Thread-safety: one caller at a time.
#ifndef SHARDPACK_READERS_DATASET_SHARD_WARNINGS_H_
#define SHARDPACK_READERS_DATASET_SHARD_WARNINGS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace shardpack {

// A sample of which the shard holds only a part, so that it has no record.
struct LostSample {
  uint32_t shard = 0;  // of the dataset
  std::string key;
  std::string why;  // one sentence, with the place
};

struct ShardWarning {
  std::string kind;  // equal for warnings that other shards may cause in the same way
  std::string text;  // one sentence, with the shard's path
};

class ShardWarnings {
 public:
  void Add(std::span<const ShardWarning> warnings);
  // In their order; where some are not kept, the last one says how many.
  std::vector<std::string> Texts() const;

 private:
  std::map<std::string, size_t> kinds_;
  std::vector<std::string> kept_;
  size_t more_ = 0;
};

}  // namespace shardpack

#endif  // SHARDPACK_READERS_DATASET_SHARD_WARNINGS_H_

// WarmShards: mappings of the shards that are completely in the page cache.
//
//   if (std::shared_ptr<const MappedShard> shard = warm.Get(n)) shard->Copy(offset, into);
//   warm.RecordRead(n, *file, was_cached);     // else: report if the cache served it
//
// A shard is mapped once some reads of it were served from the page cache and a check found all its
// parts there; copying an uncached part would make a CPU thread wait for the disk. When copies
// become slow, another check looks for evicted parts and drops the mapping if it finds any.
//
// Lifetime: a returned pointer keeps its mapping.
// Thread-safety: const, any thread.
// Errors: none; a shard that cannot be mapped is read instead.
// Units: bytes, nanoseconds.
#ifndef SHARDPACK_READERS_DATASET_WARM_SHARDS_H_
#define SHARDPACK_READERS_DATASET_WARM_SHARDS_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>

#include "formats/io/file.h"
#include "readers/dataset/dataset.h"
#include "readers/dataset/mapped_shard.h"

namespace shardpack {

class WarmShards {
 public:
  explicit WarmShards(std::span<const DatasetShard> shards);

  std::shared_ptr<const MappedShard> Get(uint32_t shard) const;
  void RecordRead(uint32_t shard, const File& file, bool was_cached) const;
  // Whether a copy took longer than a copy from memory should.
  static bool IsSlow(uint64_t bytes, uint64_t ns);
  // Call after a slow copy; checks at most once per second.
  void LookAgain(uint32_t shard, const File& file) const;

 private:
  struct State {
    uint64_t bytes = 0;
    std::atomic<uint32_t> hits{0};         // reads from the page cache since the last miss or check
    std::atomic<uint32_t> wanted_hits;     // needed before the next check
    std::atomic<int64_t> next_look_ns{0};  // earliest time of the next check after slow copies
    std::mutex mutex;                      // guards the members below
    std::shared_ptr<const MappedShard> mapping;
    std::atomic<bool> is_mapped{false};
  };
  static bool AllCached(const File& file, uint64_t bytes);

  mutable std::deque<State> states_;
};

}  // namespace shardpack

#endif  // SHARDPACK_READERS_DATASET_WARM_SHARDS_H_

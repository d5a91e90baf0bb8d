// WarmShards: the shards that lie in the page cache as a whole, as mappings.
//
//   if (std::shared_ptr<const MappedShard> shard = warm.Get(n)) shard->Copy(offset, into);
//   warm.RecordRead(n, *file, was_cached);     // else: how a read that did not wait went
//
// A shard is mapped after some reads of it were served from the page cache and a walk over it found
// every part there: a copy of what is not there would make a CPU thread wait for the disk. When
// copies are slow, another walk looks whether parts are gone, and the mapping is dropped.
//
// Lifetime: who holds a mapping keeps it.
// Thread-safety: const, any thread.
// Errors: none; a shard that cannot be mapped is read.
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
  // Whether a copy took longer than one from memory does.
  static bool IsSlow(uint64_t bytes, uint64_t ns);
  // After a slow one; looks no more than once a second.
  void LookAgain(uint32_t shard, const File& file) const;

 private:
  struct State {
    uint64_t bytes = 0;
    std::atomic<uint32_t> hits{0};         // reads from the page cache since the last miss or walk
    std::atomic<uint32_t> wanted_hits;     // before the next walk
    std::atomic<int64_t> next_look_ns{0};  // when slow copies may be looked into again
    std::mutex mutex;                      // of what is below
    std::shared_ptr<const MappedShard> mapping;
    std::atomic<bool> is_mapped{false};
  };
  static bool AllCached(const File& file, uint64_t bytes);

  mutable std::deque<State> states_;
};

}  // namespace shardpack

#endif  // SHARDPACK_READERS_DATASET_WARM_SHARDS_H_

// WarmShard: the mapping of a shard that is completely in the page cache.
//
//   if (std::shared_ptr<const MappedShard> mapped = warm.Get()) {
//     if (CopyFields(*mapped, ...)) warm.LookAgain(file);
//   } else {
//     warm.RecordRead(file, was_cached);   // whether the page cache served it
//   }
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
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>

#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/io/ns_since.h"
#include "readers/dataset/dataset.h"
#include "readers/dataset/mapped_shard.h"

namespace shardpack {

class WarmShard {
 public:
  explicit WarmShard(uint64_t bytes) : bytes_(bytes) {}

  std::shared_ptr<const MappedShard> Get() const;
  void RecordRead(const File& file, bool was_cached) const;
  // Whether a copy took longer than a copy from memory should.
  static bool IsSlow(uint64_t bytes, uint64_t ns);
  // Call after a slow copy; checks at most once per second.
  void LookAgain(const File& file) const;

 private:
  bool AllCached(const File& file) const;

  const uint64_t bytes_;
  // Reads from the page cache since the last miss or check, and how many come before the next one.
  mutable std::atomic<uint32_t> hits_{0}, wanted_hits_{16};
  mutable std::atomic<int64_t> next_look_ns_{
      0};                     // earliest time of the next check after slow copies
  mutable std::mutex mutex_;  // guards mapping_
  mutable std::shared_ptr<const MappedShard> mapping_;
  mutable std::atomic<bool> is_mapped_{false};
};

class WarmShards {
 public:
  explicit WarmShards(std::span<const DatasetShard> shards) {
    for (const DatasetShard& shard : shards) shards_.emplace_back(shard.bytes);
  }
  const WarmShard& operator[](uint32_t shard) const { return shards_[shard]; }

 private:
  std::deque<WarmShard> shards_;
};

// One of the fields that CopyFields copies, and the hash that it must have.
struct MappedField {
  uint64_t offset = 0;
  std::span<std::byte> into;
  uint64_t hash = 0;
};

// Copies `count` fields, together no more than what a core's cache keeps until it is hashed.
// `field(i)` is a MappedField; `failed(i)` is called where it cannot be copied, or with `verify`
// has another hash, after its pages were dropped, so that another read comes from the disk. Returns
// whether it was slow.
template <typename Field, typename Failed>
bool CopyFields(const MappedShard& shard, size_t count, bool verify, const Field& field,
                const Failed& failed) {
  const auto start = std::chrono::steady_clock::now();
  uint64_t bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    if (i + 1 < count) {
      const MappedField next = field(i + 1);
      shard.Prefetch(next.offset, next.into.size());
    }
    const MappedField now = field(i);
    if (!shard.Copy(now.offset, now.into) || (verify && Xxh3_64(now.into) != now.hash)) {
      shard.Forget(now.offset, now.into.size());
      failed(i);
    }
    bytes += now.into.size();
  }
  return WarmShard::IsSlow(bytes, NsSince(start));
}

}  // namespace shardpack

#endif  // SHARDPACK_READERS_DATASET_WARM_SHARDS_H_

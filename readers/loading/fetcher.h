// Fetcher: reads any samples of a dataset into slabs: sorted by offset, near ones in one call, each
// checked against its hash while it is in the cache.
//
//   absl::StatusOr<Fetcher> fetcher = Fetcher::Create(dataset, {.fields = {"image"}}, memory);
//   absl::StatusOr<HostBatch> batch = fetcher->Fetch(ids);   // for an order of one's own
//
// Loader spreads the same work over threads: Plan, a lease of slabs, Place, Read of ranges of
// items.
//
// Lifetime: keeps the dataset; the HostMemory outlives it.
// Thread-safety: const, any thread.
// Errors: OutOfRange for an id; DataLoss with shard, record, key, field, offset; ResourceExhausted;
// I/O.
// Units: bytes.
#ifndef SHARDPACK_READERS_LOADING_FETCHER_H_
#define SHARDPACK_READERS_LOADING_FETCHER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/core/image_info.h"
#include "formats/core/sample.h"
#include "readers/dataset/dataset.h"
#include "readers/dataset/shard_table.h"
#include "readers/dataset/warm_shards.h"
#include "readers/loading/host_batch.h"
#include "readers/loading/host_memory.h"
#include "readers/loading/slab_pool.h"

namespace shardpack {

struct FetchOptions {
  std::vector<std::string> fields = {std::string(kImageField)};
  bool verify = true;
  bool image_infos = false;                   // FetchPlan::infos are wanted
  size_t slab_bytes = 0;                      // 0: chosen from the mean size of a sample
  size_t batch_samples = 256;                 // what slab_bytes and the pool are chosen for
  size_t batches = 4;                         // so many fit into the pool
  uint64_t memory_bytes = uint64_t{1} << 30;  // of the pool at most
  // Shards that lie in the page cache as a whole are mapped and copied from, which is several times
  // faster for small samples; installs a handler for SIGBUS (readers/dataset/mapped_shard.h).
  bool map_warm_shards = true;
  // Samples this near to each other are read in one call, with what lies between.
  uint64_t max_gap_bytes = 4096;
};

// One field of one slot. Plain.
struct FetchItem {
  uint64_t offset, length, hash, record;
  uint32_t shard, slot;
  uint16_t field;   // position in FetchOptions::fields
  uint16_t column;  // in the shard's index
  uint32_t run;     // of the lease, and where in it
  uint64_t buffer_offset;
  std::byte* into;  // set by Place
};

struct FetchPlan {
  std::vector<FetchItem> items;                  // sorted by shard and offset
  std::vector<SampleLocation> locations;         // per slot
  std::vector<const ShardTable::Shard*> shards;  // per slot
  std::vector<size_t> run_slabs;                 // to be leased
  std::vector<uint64_t> run_bytes;
  std::vector<ImageInfo> infos;  // per slot, with FetchOptions::image_infos
  uint64_t bytes = 0;            // of all items
};

// A slot that could not be read.
struct BadRead {
  uint32_t slot = 0;
  absl::Status why;
};

// Items [begin, end) of a plan, to be read by a thread that may wait.
struct ItemRange {
  size_t begin = 0, end = 0;
};

class Fetcher {
 public:
  static absl::StatusOr<Fetcher> Create(Dataset dataset, FetchOptions options, HostMemory& memory);

  // Reads into a lease of the pool, in this thread. Any bad sample is the error.
  absl::StatusOr<HostBatch> Fetch(std::span<const uint64_t> ids) const;

  absl::StatusOr<std::unique_ptr<HostBatch::Content>> FetchContent(std::span<const uint64_t> ids,
                                                                   FetchPlan& plan) const;

  const ShardTable& table() const { return *table_; }
  const FetchOptions& options() const { return options_; }
  const std::shared_ptr<SlabPool>& pool() const { return pool_; }

  // Items and their offsets for these ids; fills ids, labels, status, bytes of `content` but for
  // what Place adds. kPaddingId is a slot without bytes.
  absl::Status Plan(std::span<const uint64_t> ids, FetchPlan& plan,
                    HostBatch::Content& content) const;
  void Place(SlabLease lease, FetchPlan& plan, HostBatch::Content& content) const;
  // The end of a piece of work of reasonable size that begins at `begin`.
  size_t PieceEnd(const FetchPlan& plan, size_t begin) const;
  // Reads and checks. With `missed`, only what lies in the page cache; the rest is added there.
  void Read(const FetchPlan& plan, ItemRange range, std::vector<ItemRange>* missed,
            std::vector<BadRead>& bad) const;

 private:
  Fetcher() = default;
  size_t GroupEnd(const FetchPlan& plan, size_t begin, size_t end) const;
  absl::Status Locate(std::span<const uint64_t> ids, FetchPlan& plan) const;
  // Of one shard. False: nothing was read, because it would have waited.
  bool ReadGroup(const FetchPlan& plan, ItemRange group, const File& file, bool may_wait) const;
  void CopyMapped(const FetchPlan& plan, ItemRange range, const MappedShard& shard,
                  std::vector<BadRead>& bad) const;
  void Check(const FetchPlan& plan, ItemRange range, bool read, std::vector<BadRead>& bad) const;

  FetchOptions options_;
  std::shared_ptr<const ShardTable> table_;
  std::shared_ptr<const std::vector<std::string>> field_names_;
  std::shared_ptr<SlabPool> pool_;
  std::shared_ptr<const WarmShards> warm_;  // null: every read is a system call
};

}  // namespace shardpack

#endif  // SHARDPACK_READERS_LOADING_FETCHER_H_

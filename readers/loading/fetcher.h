// Fetcher: reads arbitrary samples of a dataset into slabs: sorted by offset, nearby ones in one
// call, each verified against its hash while it is in the CPU cache.
//
//   absl::StatusOr<Fetcher> fetcher = Fetcher::Create(dataset, {.fields = {"image"}}, memory);
//   absl::StatusOr<HostBatch> batch = fetcher->Fetch(ids);   // in any order you like
//
// Loader spreads the same work over threads: Plan, lease slabs, Place, then Read of ranges of
// items.
//
// Lifetime: keeps a copy of the dataset; the HostMemory must outlive it.
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
  bool image_infos = false;                   // fill FetchPlan::infos
  size_t slab_bytes = 0;                      // 0: derived from the mean size of a sample
  size_t batch_samples = 256;                 // slab_bytes and the pool are sized for this
  size_t batches = 4;                         // number of batches that the pool holds
  uint64_t memory_bytes = uint64_t{1} << 30;  // upper limit of the pool
  // Maps shards that are completely in the page cache and copies from them, which is several times
  // faster for small samples; installs a SIGBUS handler (readers/dataset/mapped_shard.h).
  bool map_warm_shards = true;
  // Samples with gaps up to this are read in one call, together with the gap.
  uint64_t max_gap_bytes = 4096;
};

// One field of one slot. A plain value.
struct FetchItem {
  uint64_t offset, length, hash, record;
  uint32_t shard, slot;
  uint16_t field;   // position in FetchOptions::fields
  uint16_t column;  // in the shard's index
  uint32_t run;     // index in the lease; its offset in the run follows
  uint64_t buffer_offset;
  std::byte* into;  // set by Place
};

struct FetchPlan {
  std::vector<FetchItem> items;                  // sorted by shard and offset
  std::vector<SampleLocation> locations;         // per slot
  std::vector<const ShardTable::Shard*> shards;  // per slot
  std::vector<size_t> run_slabs;                 // slabs per run, to be leased
  std::vector<uint64_t> run_bytes;
  std::vector<ImageInfo> infos;  // per slot, with FetchOptions::image_infos
  uint64_t bytes = 0;            // of all items
};

// A slot that could not be read.
struct BadRead {
  uint32_t slot = 0;
  absl::Status why;
};

// Items [begin, end) of a plan, for a thread that may block.
struct ItemRange {
  size_t begin = 0, end = 0;
};

class Fetcher {
 public:
  static absl::StatusOr<Fetcher> Create(Dataset dataset, FetchOptions options, HostMemory& memory);

  // Reads into a lease of the pool, in the calling thread. Fails on any bad sample.
  absl::StatusOr<HostBatch> Fetch(std::span<const uint64_t> ids) const;

  absl::StatusOr<std::unique_ptr<HostBatch::Content>> FetchContent(std::span<const uint64_t> ids,
                                                                   FetchPlan& plan) const;

  const ShardTable& table() const { return *table_; }
  const FetchOptions& options() const { return options_; }
  const std::shared_ptr<SlabPool>& pool() const { return pool_; }

  // Computes the items and their offsets for these ids; fills ids, labels, status and bytes of
  // `content`, except the fields that Place fills. A kPaddingId slot has no bytes.
  absl::Status Plan(std::span<const uint64_t> ids, FetchPlan& plan,
                    HostBatch::Content& content) const;
  void Place(SlabLease lease, FetchPlan& plan, HostBatch::Content& content) const;
  // The end of a reasonably sized piece of work that begins at `begin`.
  size_t PieceEnd(const FetchPlan& plan, size_t begin) const;
  // Reads and verifies. With `missed`, reads only what is in the page cache and adds the rest to
  // `missed`.
  void Read(const FetchPlan& plan, ItemRange range, std::vector<ItemRange>* missed,
            std::vector<BadRead>& bad) const;

 private:
  Fetcher() = default;
  absl::Status Locate(std::span<const uint64_t> ids, FetchPlan& plan) const;
  // Reads the first items of a range in one shard that one call can get, and returns them. `read`
  // is false if that failed, or would have blocked although it may not.
  ItemRange ReadNeighbours(const FetchPlan& plan, ItemRange range, const File& file, bool may_wait,
                           bool& read) const;
  void CopyMapped(const FetchPlan& plan, ItemRange range, const MappedShard& shard,
                  std::vector<BadRead>& bad) const;
  void Check(const FetchPlan& plan, ItemRange range, bool read, std::vector<BadRead>& bad) const;

  FetchOptions options_;
  std::shared_ptr<const ShardTable> table_;
  std::shared_ptr<const std::vector<std::string>> field_names_;
  std::shared_ptr<SlabPool> pool_;
};

}  // namespace shardpack

#endif  // SHARDPACK_READERS_LOADING_FETCHER_H_

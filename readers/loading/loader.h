// Loader: batches in exact global order, read ahead of the consumer by threads of its own.
//
//   absl::StatusOr<Loader> loader = Loader::Open(dataset, order, rank, {}, memory);
//   absl::StatusOr<std::optional<HostBatch>> batch = loader->Next();   // nullopt: end of epoch
//   Cursor resume = loader->cursor();                // the batch that Next would give next
//
// Next gives the batches of step 0, 1, ... of an epoch, then nullopt once, then those of the next
// epoch; batches read ahead and not given do not count for the cursor, so that a loader opened with
// it goes on with the very next sample, at any world size that divides the global batch. Threads:
// `threads` do the work of the CPU (reading what lies in the page cache, hashes, decoding); reads
// that must wait for the disk go to up to `io_threads` more, started when first needed.
//
// Lifetime: batches may outlive the loader, the HostMemory outlives both. The destructor stops and
// joins the threads, which takes no longer than the reads under way.
// Thread-safety: one caller of Next at a time; Stop, cursor and stats from any thread. Not across
// fork: in the child Next is FailedPrecondition and all else does nothing.
// Errors: Open InvalidArgument (order, rank, cursor, fields do not fit), ResourceExhausted; Next
// Cancelled after Stop, DataLoss or I/O of the first bad sample under BadSamples::kFail or beyond
// the budget, again at each further call.
// Units: bytes.
#ifndef SHARDPACK_READERS_LOADING_LOADER_H_
#define SHARDPACK_READERS_LOADING_LOADER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/core/sample.h"
#include "images/augment/pixel_pipeline.h"
#include "readers/dataset/dataset.h"
#include "readers/loading/host_batch.h"
#include "readers/loading/host_memory.h"
#include "readers/loading/loader_stats.h"
#include "readers/order/cursor.h"
#include "readers/order/order.h"
#include "readers/order/rank.h"

namespace shardpack {

// Asked about every 50 ms by a call that waits, on the caller's thread; true ends the wait.
using Interrupted = std::function<bool()>;

enum class BadSamples : uint8_t {
  kFail,        // the first one is the error of Next
  kSubstitute,  // the sample of the next slots of the epoch's order that can be read stands in
};

// One sample that could not be read, or not be decoded.
struct BadSample {
  uint64_t epoch = 0, step = 0, id = 0;
  std::string why;  // names shard, record, key, field and offset
};

struct LoaderOptions {
  std::vector<std::string> fields = {std::string(kImageField)};
  bool verify = true;  // every field against its hash, each time it is read
  // Copies from mappings of shards that lie in the page cache (readers/dataset/mapped_shard.h:
  // SIGBUS).
  bool map_warm_shards = true;
  int threads = 0;  // 0: the cores this process may use
  int io_threads = 32;
  uint32_t prefetch_batches = 0;              // 0: enough to keep the I/O threads busy, at least 4
  uint64_t memory_bytes = uint64_t{1} << 30;  // for batches, at most
  size_t slab_bytes = 0;                      // 0: chosen from the mean size of a sample
  uint64_t epochs = 0;  // after so many Next gives nullopt for ever; 0: no end
  // Decodes the field `image` to HostBatch::pixels; its encoded bytes are not kept.
  std::optional<PixelPipelineOptions> decode = std::nullopt;
  uint64_t augment_seed = 0;  // of random crops and flips
  bool image_infos = false;   // HostBatch::image_infos is wanted, by who decodes batches himself
  BadSamples bad_samples = BadSamples::kFail;
  uint64_t max_bad_samples = 100;  // substituted over the life of the loader; more are an error
};

class Loader {
 public:
  static absl::StatusOr<Loader> Open(Dataset dataset, Order order, Rank rank, LoaderOptions options,
                                     HostMemory& memory,
                                     std::optional<Cursor> cursor = std::nullopt);
  Loader(Loader&&) noexcept;
  Loader& operator=(Loader&&) noexcept;
  ~Loader();

  // Cancelled when it was interrupted while it waited; the next call gives that batch.
  absl::StatusOr<std::optional<HostBatch>> Next(const Interrupted& interrupted = nullptr);
  Cursor cursor() const;
  LoaderStats stats() const;
  // The samples that others stood in for in delivered batches, since the last call.
  std::vector<BadSample> TakeBadSamples();
  // Shard, record and key of a sample of the dataset, as errors name it.
  std::string Describe(uint64_t id) const;
  // Ends all work; whoever waits in Next gets Cancelled.
  void Stop();

 private:
  class Core;
  struct Decoding;
  explicit Loader(std::unique_ptr<Core> core);
  static absl::StatusOr<std::unique_ptr<Decoding>> MakeDecoding(LoaderOptions& options,
                                                                uint32_t slots, HostMemory& memory);
  std::unique_ptr<Core> core_;
};

}  // namespace shardpack

#endif  // SHARDPACK_READERS_LOADING_LOADER_H_

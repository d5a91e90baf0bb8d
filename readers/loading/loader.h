// Loader: delivers batches in exact global order, read ahead by its own threads.
//
//   absl::StatusOr<Loader> loader = Loader::Open(dataset, order, rank, {}, memory);
//   absl::StatusOr<std::optional<HostBatch>> batch = loader->Next();   // nullopt: end of epoch
//   Cursor resume = loader->cursor();                // the batch that Next would return next
//
// Next returns the batches of steps 0, 1, ... of an epoch, then nullopt once, then those of the
// next epoch. Batches that were read ahead but not delivered do not count for the cursor: a loader
// opened with it continues with the very next sample, at any world size that divides the global
// batch. Threads: `threads` do the CPU work (reading from the page cache, hashing, decoding); reads
// that must wait for the disk go to up to `io_threads` more, started when first needed.
//
// Lifetime: batches may outlive the loader; the HostMemory must outlive both. The destructor stops
// and joins the threads, which takes no longer than the reads in progress.
// Thread-safety: one caller of Next or NextWithin at a time; Stop, cursor and stats from any
// thread. Not usable after fork: in the child, Next returns FailedPrecondition and everything else
// does nothing.
// Errors: Open: InvalidArgument (order, rank, cursor or fields do not fit), ResourceExhausted.
// Next: Cancelled after Stop; DataLoss or I/O of the first bad sample under BadSamples::kFail or
// beyond the budget, again on every further call.
// Units: bytes.
#ifndef SHARDPACK_READERS_LOADING_LOADER_H_
#define SHARDPACK_READERS_LOADING_LOADER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "augment/mix.h"
#include "augment/plan.h"
#include "formats/core/sample.h"
#include "images/augment/pixel_pipeline.h"
#include "readers/dataset/dataset.h"
#include "readers/loading/field_decode.h"
#include "readers/loading/host_batch.h"
#include "readers/loading/host_memory.h"
#include "readers/loading/loader_stats.h"
#include "readers/order/cursor.h"
#include "readers/order/order.h"
#include "readers/order/rank.h"

namespace shardpack {

// A waiting call invokes this about every 50 ms on the caller's thread; returning true ends the
// wait.
using Interrupted = std::function<bool()>;

enum class BadSamples : uint8_t {
  kFail,        // the first one fails Next
  kSubstitute,  // the next readable sample in the epoch's order replaces it
};

// One sample that could not be read or decoded.
struct BadSample {
  uint64_t epoch = 0, step = 0, id = 0;
  std::string why;  // names shard, record, key, field and offset
};

struct LoaderOptions {
  std::vector<std::string> fields = {std::string(kImageField)};
  bool verify = true;  // check every field's hash on each read
  // Copies from mappings of shards that are in the page cache. Installs a SIGBUS handler; see
  // readers/dataset/mapped_shard.h.
  bool map_warm_shards = true;
  int threads = 0;  // 0: CoresOfRank (formats/io/rank_cores.h)
  int io_threads = 32;
  uint32_t prefetch_batches = 0;              // 0: enough to keep the I/O threads busy, at least 4
  uint64_t memory_bytes = uint64_t{1} << 30;  // maximum for batches
  size_t slab_bytes = 0;                      // 0: derived from the mean size of a sample
  uint64_t epochs = 0;                        // afterwards Next returns nullopt forever; 0: endless
  // Decodes the field `image` into HostBatch::pixels; its encoded bytes are not kept.
  std::optional<PixelPipelineOptions> decode = std::nullopt;
  uint64_t augment_seed = 0;  // of all that is random about pixels
  // With `decode`: operations on the pixels, after crop, resize and flip.
  AugmentPlan augment = {};
  // With `decode`: versions of each sample, each with a crop and operations of its own.
  uint32_t views = 1;
  // With `decode`: mixes neighbouring samples and fills HostBatch::mixed.
  std::optional<MixOptions> mix = std::nullopt;
  // Goes on from a cursor of a run that augmented its samples in another way.
  bool other_augment = false;
  // With `decode`: fields that hold masks (images/augment/mask_pipeline.h), which are read, too,
  // and decoded into HostBatch::masks.
  std::vector<std::string> mask_fields = {};
  // With `decode`: further fields that are read and decoded, into HostBatch::decoded_fields and
  // objects.
  std::vector<FieldDecode> decode_fields = {};
  // Fills HostBatch::image_infos, for callers that decode batches themselves. Without `decode`,
  // SetAugmentation then checks that the cursor belongs to the caller's augmentation.
  bool image_infos = false;
  BadSamples bad_samples = BadSamples::kFail;
  // Substitutions allowed over the loader's lifetime; more are an error.
  uint64_t max_bad_samples = 100;
};

class Loader {
 public:
  static absl::StatusOr<Loader> Open(Dataset dataset, Order order, Rank rank, LoaderOptions options,
                                     HostMemory& memory,
                                     std::optional<Cursor> cursor = std::nullopt);
  Loader(Loader&&) noexcept;
  Loader& operator=(Loader&&) noexcept;
  ~Loader();

  // Cancelled if interrupted while waiting; the next call then returns that batch.
  absl::StatusOr<std::optional<HostBatch>> Next(const Interrupted& interrupted = nullptr);
  // DeadlineExceeded if the batch is not there within this time, which may be 0; a later call
  // returns it.
  absl::StatusOr<std::optional<HostBatch>> NextWithin(std::chrono::milliseconds most);
  Cursor cursor() const;
  // For callers that decode and augment themselves (LoaderOptions::image_infos), before the first
  // Next: from now on cursors and statistics have this plan. InvalidArgument for the cursor of a
  // run that augmented otherwise, without LoaderOptions::other_augment. Until SetAugmentation has
  // accepted the plan, Next fails in the same way.
  absl::Status SetAugmentation(const AugmentPlan& plan);
  // The cursor that SetAugmentation would give, and its error.
  absl::StatusOr<Cursor> CursorOf(const AugmentPlan& plan) const;
  LoaderStats stats() const;
  // The bad samples that were substituted in delivered batches, since the last call.
  std::vector<BadSample> TakeBadSamples();
  // Shard, record and key of a sample of the dataset, as error messages give them.
  std::string Describe(uint64_t id) const;
  // Ends all work; a waiting Next returns Cancelled.
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

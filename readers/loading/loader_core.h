// Loader::Core: the threads and queues of a Loader, and each batch from plan to delivery.
//
//   auto core = std::make_unique<Loader::Core>(order, rank, options, fetcher, identity, nullptr);
//   absl::Status started = core->Start(cursor);
//   absl::StatusOr<std::optional<HostBatch>> batch = core->Next(nullptr);
//
// Any idle CPU thread plans the next batch, one batch at a time. CPU threads read its pieces as
// long as that does not block; otherwise I/O threads do. Then it is decoded if requested. The
// thread that finishes the last piece completes the batch.
//
// Lifetime: the destructor stops and joins the threads; batches may outlive it, and the HostMemory
// must outlive both.
// Thread-safety, Errors, Units: those of Loader (readers/loading/loader.h).
#ifndef SHARDPACK_READERS_LOADING_LOADER_CORE_H_
#define SHARDPACK_READERS_LOADING_LOADER_CORE_H_

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/io/hash.h"
#include "formats/io/ns_since.h"
#include "readers/loading/batch_content.h"
#include "readers/loading/batch_decoder.h"
#include "readers/loading/fetcher.h"
#include "readers/loading/field_decoder.h"
#include "readers/loading/loader.h"

namespace shardpack {

// Room for pixels, masks or label maps of a batch, one after the other in a slab.
inline size_t AlignedPixels(size_t bytes) { return (bytes + 63) / 64 * 64; }

// Updated by many threads.
struct StageCounters {
  std::atomic<uint64_t> items{0}, bytes{0}, busy_ns{0};

  void Add(uint64_t more_items, uint64_t more_bytes, std::chrono::steady_clock::time_point start) {
    items.fetch_add(more_items, std::memory_order_relaxed);
    bytes.fetch_add(more_bytes, std::memory_order_relaxed);
    busy_ns.fetch_add(NsSince(start), std::memory_order_relaxed);
  }
  StageStats Snapshot() const {
    return {items.load(std::memory_order_relaxed), bytes.load(std::memory_order_relaxed),
            busy_ns.load(std::memory_order_relaxed)};
  }
};

struct Loader::Decoding {
  // One of LoaderOptions::decode_fields.
  struct More {
    size_t field = 0, offset = 0;  // its number; where its bytes are in a slab
    std::unique_ptr<FieldDecoder> decoder = nullptr;
  };

  // Adds what they take to the bytes of a batch.
  absl::Status AddFields(const LoaderOptions& options, uint32_t slots, size_t& batch_bytes);

  std::unique_ptr<BatchDecoder> decoder;
  std::shared_ptr<SlabPool> pool;          // one slab holds the pixels of one batch, then its masks
  size_t field = 0;                        // the index of the image field
  std::vector<size_t> masks;               // the same of each field of masks
  size_t pixel_bytes = 0, mask_bytes = 0;  // of a slab: all pixels, the masks of one field
  std::vector<More> fields;                // after the masks
  const FieldDecoder* objects = nullptr;   // the one among them that has objects
};

class Loader::Core {
 public:
  // If `decoding` is null, batches hold the encoded bytes.
  Core(Order order, Rank rank, LoaderOptions options, Fetcher fetcher, Digest dataset,
       uint32_t augment, std::unique_ptr<Decoding> decoding)
      : order_(std::move(order)),
        rank_(rank),
        options_(std::move(options)),
        fetcher_(std::move(fetcher)),
        dataset_(dataset),
        decoding_(std::move(decoding)),
        augment_(augment) {}
  ~Core();

  // Before Start: for the statistics.
  void TellAugmentation(std::string facts) { delivered_.augmentation = std::move(facts); }
  absl::Status Start(const std::optional<Cursor>& cursor);
  absl::StatusOr<std::optional<HostBatch>> Next(const Interrupted& interrupted);
  absl::StatusOr<std::optional<HostBatch>> NextWithin(std::chrono::milliseconds most);
  Cursor cursor() const;
  absl::Status SetAugmentation(uint32_t augment, std::string facts);
  absl::StatusOr<Cursor> CursorOf(uint32_t augment) const;
  LoaderStats stats() const;
  std::vector<BadSample> TakeBadSamples();
  std::string Describe(uint64_t id) const { return fetcher_.table().Describe(id); }
  void Stop();
  bool InOwnProcess() const { return ::getpid() == process_; }

 private:
  // A batch between its plan and its delivery.
  struct Pending {
    uint64_t epoch = 0, step = 0;
    FetchPlan plan;
    std::unique_ptr<HostBatch::Content> content = std::make_unique<HostBatch::Content>();
    std::atomic<size_t> left{0};  // pieces not yet read
    std::mutex bad_mutex;
    std::vector<BadRead> bad;
    std::vector<bool> unread;  // per slot, used while decoding
    std::vector<BadSample> reports;
    absl::Status status;
    bool ready = false;  // guarded by Core::mutex_

    void AddBad(const std::vector<BadRead>& more) {
      if (more.empty()) return;
      const std::lock_guard lock(bad_mutex);
      bad.insert(bad.end(), more.begin(), more.end());
    }
  };
  struct Task {
    Pending* batch = nullptr;
    ItemRange range;  // items to read, or slots to decode
  };

  // `wait` blocks until ready() or returns an error, which loses nothing.
  template <typename Wait>
  absl::StatusOr<std::optional<HostBatch>> Take(const Wait& wait);
  void RunThread(void (Core::*work)());
  void CpuThread();
  void IoThread();
  bool CanPlan() const;
  void PlanNext(std::unique_ptr<Pending> batch);
  absl::Status Prepare(Pending& batch);
  SlabPool::Patience PatienceForMemory() const;
  void ReadPiece(const Task& task, bool may_wait);
  void StartIoThreads();
  void FinishReading(Pending& batch);
  void DecodePiece(const Task& task);
  void PlacePixels(SlabLease lease, HostBatch::Content& content) const;
  // The encoded bytes are those of a slot of `from`.
  absl::Status DecodeSlot(Pending& batch, uint32_t slot, const HostBatch::Content& from,
                          size_t from_slot, const ImageInfo& info);
  absl::Status DecodeFields(Pending& batch, uint32_t slot, const HostBatch::Content& from,
                            size_t from_slot, const ImageInfo& info);
  // All samples of a group, mixed; adds what cannot be decoded to `bad`.
  void DecodeGroup(Pending& batch, size_t first, std::vector<BadRead>& bad);
  MixDraw DrawGroup(const Pending& batch, size_t first) const;
  absl::Status FillMixed(Pending& batch);
  absl::Status AboutSample(const absl::Status& why, uint64_t id) const;
  absl::Status AboutField(const absl::Status& why, size_t field) const;
  void PlaceFields(HostBatch::Content& content) const;
  // The slot's geometry is known.
  absl::Status DecodeMoreFields(Pending& batch, uint32_t slot, const HostBatch::Content& from,
                                size_t from_slot);
  void JoinObjects(HostBatch::Content& content) const;
  void Complete(Pending& batch);
  absl::Status MendBadSamples(Pending& batch);
  absl::Status Substitute(Pending& batch, uint32_t slot, const absl::Status& why);
  absl::Status CheckProcess() const;
  // Under mutex_: whether this augmentation may go on from where the loader was opened.
  absl::Status CheckAugmentation(uint32_t augment) const;
  void PokePools();

  const Order order_;
  const Rank rank_;
  const LoaderOptions options_;
  const Fetcher fetcher_;
  const Digest dataset_;
  const std::unique_ptr<const Decoding> decoding_;
  const pid_t process_ = ::getpid();
  const std::chrono::steady_clock::time_point opened_ = std::chrono::steady_clock::now();

  mutable std::mutex mutex_;
  std::condition_variable cpu_work_, io_work_, ready_;
  std::deque<std::unique_ptr<Pending>> pending_;  // by step; the front is delivered next
  std::deque<Task> tasks_, disk_tasks_, decode_tasks_;
  uint64_t plan_epoch_ = 0, plan_step_ = 0;
  bool planning_ = false;
  uint64_t epoch_ = 0, step_ = 0;  // next to deliver
  bool epoch_ended_ = false;       // its nullopt has not been returned yet
  uint32_t augment_;               // as in cursors
  // Of the cursor that the loader was opened with, where the caller is to say how it augments.
  std::optional<uint32_t> unchecked_augment_;
  std::vector<BadSample> bad_samples_;
  absl::Status thrown_;  // what an exception in a thread was about
  std::vector<std::thread> cpu_threads_, io_threads_;

  std::atomic<bool> stop_{false};
  std::atomic<bool> consumer_waits_{false};  // inside Next
  std::atomic<size_t> pending_count_{0};     // size of pending_
  // No I/O thread could be started, so the CPU threads wait for the disk themselves.
  std::atomic<bool> cpu_threads_wait_{false};
  std::atomic<uint64_t> bad_total_{0};
  StageCounters planned_, read_, disk_read_, decoded_;
  std::atomic<uint64_t> memory_wait_ns_{0};
  LoaderStats delivered_;  // what Next counts; guarded by mutex_
};

}  // namespace shardpack

#endif  // SHARDPACK_READERS_LOADING_LOADER_CORE_H_

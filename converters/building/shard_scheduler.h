// ShardScheduler: builds many shards at once: reads on the I/O pool, judges on TBB, appends each
// shard in its order.
//
//   ShardScheduler scheduler(plan, source, out, SchedulerOptions{.jobs = 8, .memory_bytes = 1 << 30}, pool, progress);
//   absl::Status built = scheduler.Run(shards_to_build, stop, [&](ShardResult result) { ... });
//
// One thread (Run's caller) hands out chunks of positions, round robin over as many open shards as
// there are computing threads. A chunk is read in the pool, judged in TBB, and appended by
// whichever thread completes its shard's next chunk: no thread waits for another one.
//
// Lifetime: borrows everything for its own.
// Thread-safety: one Run at a time. Where pixels are changed: an image's decoded size counts as
// memory before it is decoded, and so does what becomes of it until its shard has it; a chunk that
// has grown large is appended in pieces. A chunk whose next image does not fit is put aside, so no
// thread waits; the chunk that its shard needs next may always go on when no other image is being
// worked on, so the run never stands still.
// Errors: the first error of a shard ends the run, except that a shard whose file could not be
// written or proven is discarded and built once more.
// Memory: chunks in flight hold at most memory_bytes, or one sample.
// Units: bytes.
#ifndef SHARDPACK_CONVERTERS_BUILDING_SHARD_SCHEDULER_H_
#define SHARDPACK_CONVERTERS_BUILDING_SHARD_SCHEDULER_H_

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "converters/building/build.h"
#include "converters/building/shard_builder.h"
#include "images/transform/transform.h"

namespace shardpack {

struct SchedulerOptions {
  int jobs = 1;
  uint64_t memory_bytes = uint64_t{1} << 30;
};

class ShardScheduler {
 public:
  // `transform`: what becomes of the pixels; nullptr: they stay as they are.
  ShardScheduler(const Plan& plan, const SampleSource& source, OutputDir& out,
                 const SchedulerOptions& options, const ImageTransform* transform, IoPool& pool,
                 BuildProgress& progress);
  ~ShardScheduler();

  // Builds the shards of those numbers. `done` is called for each, one call at a time, from any
  // thread. Cancelled when `stop` became non-zero; shards that were not finished are then
  // discarded. Where memory or threads run out, here or in a task, std::terminate ends the process,
  // which a later run resumes: the tasks that are under way leave no safe way back.
  absl::Status Run(std::vector<uint32_t> shards, const std::atomic<int>& stop,
                   const std::function<void(ShardResult)>& done) noexcept;

 private:
  struct OpenShard;
  struct Flight;
  struct Parked;
  enum class Step : uint8_t { kGo, kParked, kGiveUp };

  absl::Status OpenNext();
  absl::StatusOr<uint32_t> TakeWaiting();
  void Done(ShardResult result);
  std::unique_ptr<Flight> NextChunk(OpenShard& shard);
  std::unique_ptr<SampleChunk> TakeChunk();
  void Launch(std::shared_ptr<OpenShard> shard, std::unique_ptr<Flight> flight);
  void Judge(const std::shared_ptr<OpenShard>& shard, std::unique_ptr<Flight> flight);
  bool Transform(const std::shared_ptr<OpenShard>& shard, std::unique_ptr<Flight>& flight);
  Step BeginImage(const std::shared_ptr<OpenShard>& shard, std::unique_ptr<Flight>& flight,
                  uint64_t bytes);
  void EndImage(Flight& flight, uint64_t bytes, uint64_t grown_bytes);
  void AppendEarly(OpenShard& shard, Flight& flight);
  bool Fits(const OpenShard& shard, const Flight& flight, uint64_t bytes) const;
  void Reserve(int64_t bytes);
  void Unpark();
  std::unique_ptr<TransformScratch> TakeScratch();
  void Deliver(const std::shared_ptr<OpenShard>& shard, std::unique_ptr<Flight> flight);
  void AppendOne(OpenShard& shard, Flight& flight);
  void FinishShard(const std::shared_ptr<OpenShard>& shard);
  void FailShard(OpenShard& shard, absl::Status status);
  void Land(std::unique_ptr<Flight> flight);

  const Plan& plan_;
  const SampleSource& source_;
  OutputDir& out_;
  const SchedulerOptions options_;
  const ImageTransform* const transform_;
  IoPool& pool_;
  BuildProgress& progress_;
  const size_t max_flights_;
  tbb::global_control threads_;
  tbb::task_arena arena_;
  const std::function<void(ShardResult)>* done_ = nullptr;

  std::mutex mutex_;  // guards all below, and the fields of OpenShard so marked
  std::condition_variable changed_;
  std::deque<uint32_t> waiting_;
  std::vector<std::shared_ptr<OpenShard>> open_;
  std::vector<std::unique_ptr<SampleChunk>> idle_chunks_;
  std::vector<std::unique_ptr<TransformScratch>> idle_scratches_;
  std::vector<Parked> parked_;
  size_t working_ = 0;  // images being changed
  std::map<uint32_t, int> attempts_;
  size_t flights_ = 0;  // chunks that hold samples
  uint64_t bytes_in_flight_ = 0;
  size_t active_ = 0;  // tasks that still refer to us
  absl::Status failed_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_BUILDING_SHARD_SCHEDULER_H_

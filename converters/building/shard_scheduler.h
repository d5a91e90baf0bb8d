// ShardScheduler: builds many shards at once: reads on the I/O pool, computes on TBB, appends to
// each shard in its order.
//
//   ShardScheduler scheduler(plan, source, out, SchedulerOptions{.jobs = 8, .memory_bytes = 1 << 30},
//                            /*transform=*/nullptr, pool, progress);
//   absl::Status built = scheduler.Run(shards_to_build, stop, [&](ShardResult result) { ... });
//
// One thread (the caller of Run) issues chunks of positions, round robin over as many open shards
// as there are computing threads. A chunk is read in the pool, probed in TBB, and appended by the
// thread that completes its shard's next chunk: no thread waits for another one. While no read
// waits for the disk, the thread that has read a chunk also does the rest. Complete shards are
// verified, made durable and published by threads of their own, which wait for the disk.
//
// Where pixels are changed, an image counts as memory before it is decoded, and its result until
// the shard has it. A chunk that has grown large is appended in pieces. A chunk whose next image
// does not fit is parked, so no thread waits. The chunk that its shard needs next may always go on
// while no other image is being changed, so the run never stands still.
//
// Lifetime: borrows all arguments. Run returns when no task uses the scheduler any more.
// Thread-safety: Run is called once.
// Errors: the first error of a shard ends the run, except as failed_shards.h says. An exception in
// a task ends the run, too, with the status that build_exception.h gives; what is in flight is then
// dropped. Only TBB itself still ends the process: when one of its workers cannot start the next
// one (TBB 2021.8).
// Units: bytes.
// Memory: chunks in flight hold at most memory_bytes, or one sample.
#ifndef SHARDPACK_CONVERTERS_BUILDING_SHARD_SCHEDULER_H_
#define SHARDPACK_CONVERTERS_BUILDING_SHARD_SCHEDULER_H_

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "converters/building/build.h"
#include "converters/building/failed_shards.h"
#include "converters/building/memory_budget.h"
#include "converters/building/sample_chunk.h"
#include "converters/building/shard_choice.h"
#include "converters/building/shard_queue.h"
#include "converters/building/task_gate.h"
#include "images/transform/transform.h"

namespace shardpack {

struct SchedulerOptions {
  int jobs = 1;
  uint64_t memory_bytes = uint64_t{1} << 30;
};

class ShardScheduler {
 public:
  // `transform`: how pixels change; nullptr: nothing looks at them.
  ShardScheduler(const Plan& plan, const SampleSource& source, OutputDir& out,
                 const SchedulerOptions& options, const ImageTransform* transform, IoPool& pool,
                 BuildProgress& progress);
  ~ShardScheduler();

  // Builds the shards with these numbers. `done` is called for each, from any thread, one call at a
  // time, and without a lock that the other threads need. Cancelled if `stop` became non-zero
  // before all were done; shards that were not finished are then discarded. A worker ends with the
  // error of an input that a disk cannot read only when it has built all other shards.
  absl::Status Run(std::vector<uint32_t> shards, const std::atomic<int>& stop,
                   const std::function<void(ShardResult)>& done);

 private:
  struct OpenShard;
  // A chunk, and the shard that it belongs to.
  struct Work {
    std::shared_ptr<OpenShard> shard;
    std::unique_ptr<InFlightChunk> chunk;
  };
  // A chunk whose next image waits for that much memory.
  struct Parked {
    Work work;
    uint64_t bytes = 0;
  };
  enum class Admission : uint8_t { kGo, kWait, kGiveUp };

  // On the thread of Run.
  void IssueChunks(const std::atomic<int>& stop);
  void WaitForChunks(const std::atomic<int>& stop);
  absl::Status OpenNext();
  absl::Status Open(uint32_t number);
  std::unique_ptr<InFlightChunk> NextChunk(OpenShard& shard);

  // Tasks. There is one for each chunk in to_read_ and to_probe_, and each shard in to_finish_.
  std::function<void()> MakeTask(void (ShardScheduler::*step)());
  void ReadOne();
  void ProbeOne();
  void FinishOne();

  std::unique_ptr<SampleChunk> TakeChunk();
  bool ReadersCompute() const;
  void Compute(Work work);
  Work TakeFirst(std::deque<Work>& queue);
  std::optional<Work> Transform(Work work);
  void EndImage(InFlightChunk& chunk, uint64_t grown_bytes);
  void FlushPrefix(OpenShard& shard, InFlightChunk& chunk);
  void Deliver(Work work);
  // Whether the shard is complete; it is then in to_finish_.
  bool Retire(const std::shared_ptr<OpenShard>& shard, std::unique_ptr<InFlightChunk> chunk);
  void FinishShard(const std::shared_ptr<OpenShard>& shard);
  // `of_input`: it is what reading an input has said.
  void FailShard(OpenShard& shard, absl::Status status, bool of_input = false);
  void Report(ShardResult result);
  void EndRun(std::exception_ptr thrown);
  void EndRun(OpenShard& shard, const absl::Status& status);
  std::unique_ptr<TransformScratch> TakeScratch();
  void ReturnScratch(std::unique_ptr<TransformScratch> scratch);

  // Under mutex_.
  bool IsEnding(const std::atomic<int>& stop) const;
  bool HasRoomFor(const InFlightChunk& chunk) const;
  void Admit(const std::shared_ptr<OpenShard>& shard, InFlightChunk& chunk);
  bool ImageFits(const Work& work, uint64_t bytes) const;
  Admission AdmitImage(const Work& work, uint64_t bytes);
  void BeginImage(InFlightChunk& chunk, uint64_t bytes);
  void ResumeParked();
  void CloseIfFailed(const std::shared_ptr<OpenShard>& shard);

  const Plan& plan_;
  const SampleSource& source_;
  OutputDir& out_;
  const SchedulerOptions options_;
  const ImageTransform* const transform_;
  IoPool& pool_;
  BuildProgress& progress_;
  tbb::global_control threads_;
  tbb::task_arena arena_;
  tbb::task_arena finishing_arena_;  // for threads that wait for the disk
  const std::shared_ptr<TaskGate> gate_ = std::make_shared<TaskGate>();
  MemoryBudget memory_;

  // Run's thread only:
  using Clock = std::chrono::steady_clock;
  ShardChoice choice_;
  Clock::time_point next_look_;  // at shards that others hold
  std::chrono::milliseconds look_period_;

  std::mutex done_mutex_;  // held while `done` is called; never together with mutex_
  const std::function<void(ShardResult)>* done_ = nullptr;

  std::mutex mutex_;  // guards everything below and the fields of OpenShard that say so
  std::condition_variable changed_;
  std::deque<uint32_t> waiting_;  // shards to open
  std::vector<std::shared_ptr<OpenShard>> open_;
  std::deque<Work> to_read_, to_probe_;
  std::deque<std::shared_ptr<OpenShard>> to_finish_;
  std::vector<Parked> parked_;
  size_t in_flight_ = 0;  // chunks that hold samples
  size_t working_ = 0;    // images being changed
  size_t finishing_ = 0;  // shards whose chunks are all appended
  std::vector<std::unique_ptr<SampleChunk>> idle_chunks_;
  std::vector<std::unique_ptr<TransformScratch>> idle_scratches_;
  FailedShards failures_;
  absl::Status failed_;
  std::exception_ptr thrown_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_BUILDING_SHARD_SCHEDULER_H_

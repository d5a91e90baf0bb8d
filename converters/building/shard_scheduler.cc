#include "converters/building/shard_scheduler.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <utility>

#include "converters/building/build_exception.h"
#include "converters/building/shard_builder.h"
#include "formats/io/status_macros.h"
#include "images/codecs/inspect.h"

namespace shardpack {
namespace {

// A chunk is read by one thread without a pause: large enough that passing it on costs nothing in
// comparison, small enough that a shard has many of them outstanding on a cold disk.
constexpr uint64_t kRowsAChunk = 128;
constexpr uint64_t kBytesAChunk = 1 << 20;
// What a sample takes beside its bytes: rounding in the arena, and the views of its fields.
constexpr uint64_t kSampleOverheadBytes = 128;
// No shard is opened while so many are being issued, or so many wait to be finished: each holds a
// file, a write buffer and what its verification expects. Those whose last chunks are in flight are
// extra.
constexpr size_t kMaxOpenShards = 64;
// A scratch that has changed an image of more than this gives its memory back.
constexpr uint64_t kScratchBytes = uint64_t{32} << 20;
// A chunk whose images take more than this part of the memory is appended in pieces.
constexpr uint64_t kGrownShare = 16;
// `stop` is set by signal handlers, which cannot wake a thread.
constexpr std::chrono::milliseconds kStopPoll{100};
// Nor does the pool when it lets more reads run at once.
constexpr std::chrono::milliseconds kLimitPoll{2};
// Between two looks at shards that other workers hold.
constexpr std::chrono::milliseconds kLeastLookPeriod{50}, kMostLookPeriod{2000};

}  // namespace

struct ShardScheduler::OpenShard {
  uint32_t number = 0;
  std::unique_ptr<ShardBuilder> builder;  // used by the thread that appends
  uint64_t next = 0, end = 0;             // positions still to issue; Run's thread only
  uint64_t issued = 0;                    // chunks; Run's thread only
  // Guarded by mutex_:
  ShardQueue queue;
  uint64_t in_flight = 0;  // chunks
  bool failed = false;

  void Fail() {
    failed = true;
    queue.IgnoreOrder();
  }
};

ShardScheduler::ShardScheduler(const Plan& plan, const SampleSource& source, OutputDir& out,
                               const SchedulerOptions& options, const ImageTransform* transform,
                               IoPool& pool, BuildProgress& progress)
    : plan_(plan),
      source_(source),
      out_(out),
      options_(options),
      transform_(transform),
      pool_(pool),
      progress_(progress),
      // The workers of both arenas, and one more: TBB counts the thread that waits here.
      threads_(tbb::global_control::max_allowed_parallelism,
               2 * static_cast<size_t>(options.jobs) + 1),
      arena_(options.jobs, /*reserved_for_masters=*/0),
      finishing_arena_(options.jobs, /*reserved_for_masters=*/0),
      memory_(options.memory_bytes, progress.memory_bytes),
      choice_(plan, out),
      look_period_(kLeastLookPeriod),
      failures_(out) {}

ShardScheduler::~ShardScheduler() = default;

absl::Status ShardScheduler::Run(std::vector<uint32_t> shards, const std::atomic<int>& stop,
                                 const std::function<void(ShardResult)>& done) {
  done_ = &done;
  try {
    waiting_.assign(shards.begin(), shards.end());
    IssueChunks(stop);
    WaitForChunks(stop);
  } catch (...) {
    EndRun(std::current_exception());
  }
  gate_->ShutAndWait();
  // After an exception there may be chunks left.
  to_read_.clear();
  to_probe_.clear();
  to_finish_.clear();
  parked_.clear();
  open_.clear();
  if (failed_.ok() && thrown_ != nullptr) failed_ = BuildExceptionStatus(thrown_);
  if (!failed_.ok()) return failed_;
  if (stop.load() != 0 && progress_.done_shards < progress_.total_shards) {
    return absl::CancelledError("stopped by a signal");
  }
  return failures_.SetAside();
}

void ShardScheduler::IssueChunks(const std::atomic<int>& stop) {
  size_t turn = 0;
  const size_t max_open = std::min(static_cast<size_t>(options_.jobs), kMaxOpenShards);
  std::unique_lock lock(mutex_);
  while (!IsEnding(stop)) {
    std::vector<std::shared_ptr<OpenShard>> issuing;
    for (const auto& shard : open_) {
      if (!shard->failed && shard->next < shard->end) issuing.push_back(shard);
    }
    // What this worker holds, and has not published, the others cannot build.
    const bool hoards = out_.claims() != nullptr && open_.size() > max_open;
    const bool may_open =
        issuing.size() < max_open && finishing_ < max_open && !hoards && Clock::now() >= next_look_;
    if (may_open && !waiting_.empty()) {
      lock.unlock();
      absl::Status opened = OpenNext();
      lock.lock();
      failed_.Update(opened);
      continue;
    }
    if (issuing.empty()) {
      if (open_.empty() && in_flight_ == 0 && waiting_.empty()) return;
      changed_.wait_for(lock, kStopPoll);
      continue;
    }
    const std::shared_ptr<OpenShard> shard = issuing[turn++ % issuing.size()];
    std::unique_ptr<InFlightChunk> chunk = NextChunk(*shard);
    while (!HasRoomFor(*chunk) && !IsEnding(stop)) changed_.wait_for(lock, kLimitPoll);
    if (IsEnding(stop)) return;
    Admit(shard, *chunk);
    to_read_.push_back({shard, std::move(chunk)});
    lock.unlock();
    ++progress_.reading;
    pool_.Submit(MakeTask(&ShardScheduler::ReadOne));
    lock.lock();
  }
}

// Returns early after an exception: chunks may then be lost.
void ShardScheduler::WaitForChunks(const std::atomic<int>& stop) {
  std::unique_lock lock(mutex_);
  if (stop.load() != 0) {
    // Not worth waiting for: chunks that have yet to be changed or written. What is being finished
    // is.
    for (const auto& shard : open_) shard->Fail();
    ResumeParked();
  }
  changed_.wait(lock, [&] { return (in_flight_ == 0 && finishing_ == 0) || thrown_ != nullptr; });
}

bool ShardScheduler::IsEnding(const std::atomic<int>& stop) const {
  return !failed_.ok() || thrown_ != nullptr || stop.load() != 0;
}

// Nothing is opened while others hold all that waits; then it is looked at again after a while.
absl::Status ShardScheduler::OpenNext() {
  std::vector<uint32_t> waiting;
  bool idle;
  {
    const std::lock_guard lock(mutex_);
    waiting.assign(waiting_.begin(), waiting_.end());
    idle = open_.empty() && in_flight_ == 0;
  }
  // Without the lock: a slow disk would hold up every thread.
  ASSIGN_OR_RETURN(ShardChoice::Choice choice, choice_.Next(waiting, idle));
  const bool held = !choice.shard && choice.theirs.empty();
  if (held && idle && !out_.options().worker->wait) return ShardChoice::Held(waiting);
  look_period_ = held ? std::min(2 * look_period_, kMostLookPeriod) : kLeastLookPeriod;
  next_look_ = held ? Clock::now() + look_period_ : Clock::time_point();
  {
    const std::lock_guard lock(mutex_);
    if (choice.shard) {
      waiting_.erase(std::find(waiting_.begin(), waiting_.end(), *choice.shard));
      failures_.Begin(*choice.shard);
    }
    std::set<uint32_t> gone;
    for (const ShardResult& theirs : choice.theirs) gone.insert(theirs.shard);
    if (!gone.empty()) std::erase_if(waiting_, [&](uint32_t n) { return gone.contains(n); });
  }
  for (ShardResult& theirs : choice.theirs) {
    progress_.done_rows += plan_.shards()[theirs.shard].count;
    progress_.skipped_rows += theirs.skips.size();
    Report(std::move(theirs));
  }
  return choice.shard ? Open(*choice.shard) : absl::OkStatus();
}

absl::Status ShardScheduler::Open(uint32_t number) {
  auto shard = std::make_shared<OpenShard>();
  shard->number = number;
  ASSIGN_OR_RETURN(shard->builder, ShardBuilder::Create(plan_, number, out_));
  shard->next = plan_.shards()[number].first;
  shard->end = shard->next + plan_.shards()[number].count;
  const std::lock_guard lock(mutex_);
  open_.push_back(std::move(shard));
  return absl::OkStatus();
}

std::unique_ptr<InFlightChunk> ShardScheduler::NextChunk(OpenShard& shard) {
  auto chunk = std::make_unique<InFlightChunk>();
  chunk->sequence = shard.issued++;
  chunk->first = shard.next;
  uint64_t bytes = 0, work_bytes = 0;
  const uint64_t out_bytes = RawShape(plan_.options().pixels).value_or(FixedShape()).bytes();
  while (shard.next < shard.end && shard.next - chunk->first < kRowsAChunk &&
         work_bytes < kBytesAChunk) {
    const uint64_t sample_bytes = plan_.listing().SampleBytes(plan_.row(shard.next++));
    bytes += sample_bytes;
    work_bytes += std::max(sample_bytes, out_bytes);
  }
  chunk->count = shard.next - chunk->first;
  chunk->last = shard.next == shard.end;
  chunk->load_bytes = bytes + chunk->count * kSampleOverheadBytes;
  return chunk;
}

// A single chunk always has room. No more are read than the pool runs at once and the cores soon
// take: what waits between the two leaves the caches.
bool ShardScheduler::HasRoomFor(const InFlightChunk& chunk) const {
  const auto most = static_cast<size_t>(pool_.limit() + 2 * options_.jobs);
  return in_flight_ == 0 || (in_flight_ < most && memory_.Fits(chunk.load_bytes));
}

void ShardScheduler::Admit(const std::shared_ptr<OpenShard>& shard, InFlightChunk& chunk) {
  ++in_flight_;
  ++shard->in_flight;
  chunk.loaded = memory_.Reserve(chunk.load_bytes);
  chunk.transformed = memory_.Reserve(0);
}

// Only now, so that few take turns, which stay in the caches.
std::unique_ptr<SampleChunk> ShardScheduler::TakeChunk() {
  const std::lock_guard lock(mutex_);
  if (idle_chunks_.empty()) return std::make_unique<SampleChunk>(plan_);
  std::unique_ptr<SampleChunk> chunk = std::move(idle_chunks_.back());
  idle_chunks_.pop_back();
  return chunk;
}

// A task may start, or be destroyed, after the run: a queue that could not start a thread for a
// task may have kept it. So it holds the gate, and touches nothing else until it is inside.
std::function<void()> ShardScheduler::MakeTask(void (ShardScheduler::*step)()) {
  return [this, step, gate = gate_] {
    if (!gate->Enter()) return;
    try {
      (this->*step)();
    } catch (...) {
      EndRun(std::current_exception());
    }
    gate->Leave();
  };
}

// No shard is appended to or finished any more, since a chunk of it may be lost.
void ShardScheduler::EndRun(std::exception_ptr thrown) {
  const std::lock_guard lock(mutex_);
  if (thrown_ == nullptr) thrown_ = std::move(thrown);
  for (const auto& shard : open_) shard->Fail();
  changed_.notify_all();
}

// With an error that says nothing of the shard.
void ShardScheduler::EndRun(OpenShard& shard, const absl::Status& status) {
  const std::lock_guard lock(mutex_);
  shard.Fail();
  failed_.Update(status);
  ResumeParked();
}

ShardScheduler::Work ShardScheduler::TakeFirst(std::deque<Work>& queue) {
  const std::lock_guard lock(mutex_);
  Work work = std::move(queue.front());
  queue.pop_front();
  return work;
}

void ShardScheduler::ReadOne() {
  Work work = TakeFirst(to_read_);
  work.chunk->samples = TakeChunk();
  work.chunk->samples->Load(source_, work.chunk->first, work.chunk->count);
  --progress_.reading;
  ++progress_.computing;
  pool_.EndReading();
  if (ReadersCompute()) return Compute(std::move(work));
  {
    const std::lock_guard lock(mutex_);
    to_probe_.push_back(std::move(work));
  }
  arena_.enqueue(MakeTask(&ShardScheduler::ProbeOne));
}

// Whether the threads that read also compute what they have read: while no read waits for the disk,
// a core needs one thread, and passing a chunk to another one costs two changes of thread and cold
// caches.
bool ShardScheduler::ReadersCompute() const {
  return transform_ == nullptr && pool_.limit() <= options_.jobs &&
         pool_.threads() >= options_.jobs;
}

void ShardScheduler::ProbeOne() { Compute(TakeFirst(to_probe_)); }

void ShardScheduler::Compute(Work work) {
  if (!std::exchange(work.chunk->probed, true)) work.chunk->samples->Probe();
  if (transform_ != nullptr) {
    std::optional<Work> transformed = Transform(std::move(work));
    if (!transformed.has_value()) return;
    work = *std::move(transformed);
  }
  progress_.bytes_in += work.chunk->samples->bytes_in();
  progress_.skipped_rows += work.chunk->samples->skips().size();
  progress_.done_rows += work.chunk->count;
  Deliver(std::move(work));
  --progress_.computing;
}

// The chunk with its pixels changed; nothing if it is parked.
std::optional<ShardScheduler::Work> ShardScheduler::Transform(Work work) {
  std::unique_ptr<TransformScratch> scratch = TakeScratch();
  InFlightChunk& chunk = *work.chunk;
  while (const PreparedSample* sample = chunk.samples->next()) {
    const TransformTarget target = transform_->Decide(sample->fields[0].bytes, sample->image);
    uint64_t bytes = ImageTransform::WorkingBytes(sample->image, target);
    if (plan_.options().compute_stats) bytes += DecodeMemoryBytes(sample->image, /*scans=*/1);
    {
      const std::lock_guard lock(mutex_);
      const Admission admission = AdmitImage(work, bytes);
      if (admission == Admission::kGiveUp) break;
      if (admission == Admission::kWait) {
        parked_.push_back({std::move(work), bytes});
        idle_scratches_.push_back(std::move(scratch));
        return std::nullopt;
      }
    }
    const uint64_t grown_bytes = chunk.samples->TransformNext(*transform_, target, *scratch);
    if (bytes > kScratchBytes) scratch->Trim();
    EndImage(chunk, grown_bytes);
    if (chunk.transformed.bytes() > memory_.limit_bytes() / kGrownShare)
      FlushPrefix(*work.shard, chunk);
  }
  chunk.samples->Hash();
  ReturnScratch(std::move(scratch));
  return work;
}

std::unique_ptr<TransformScratch> ShardScheduler::TakeScratch() {
  const std::lock_guard lock(mutex_);
  if (idle_scratches_.empty()) return std::make_unique<TransformScratch>();
  std::unique_ptr<TransformScratch> scratch = std::move(idle_scratches_.back());
  idle_scratches_.pop_back();
  return scratch;
}

void ShardScheduler::ReturnScratch(std::unique_ptr<TransformScratch> scratch) {
  const std::lock_guard lock(mutex_);
  idle_scratches_.push_back(std::move(scratch));
}

bool ShardScheduler::ImageFits(const Work& work, uint64_t bytes) const {
  return memory_.Fits(bytes) || (working_ == 0 && work.shard->queue.IsNext(work.chunk->sequence));
}

ShardScheduler::Admission ShardScheduler::AdmitImage(const Work& work, uint64_t bytes) {
  if (std::exchange(work.chunk->admitted, false)) return Admission::kGo;
  if (work.shard->failed) return Admission::kGiveUp;
  if (!ImageFits(work, bytes)) return Admission::kWait;
  BeginImage(*work.chunk, bytes);
  return Admission::kGo;
}

void ShardScheduler::BeginImage(InFlightChunk& chunk, uint64_t bytes) {
  ++working_;
  chunk.working = memory_.Reserve(bytes);
}

void ShardScheduler::EndImage(InFlightChunk& chunk, uint64_t grown_bytes) {
  const std::lock_guard lock(mutex_);
  --working_;
  chunk.working.Resize(0);
  chunk.transformed.Resize(chunk.transformed.bytes() + grown_bytes);
  ResumeParked();
}

// The images of a small file may be large: the chunk whose turn it is need not hold all of them.
void ShardScheduler::FlushPrefix(OpenShard& shard, InFlightChunk& chunk) {
  {
    const std::lock_guard lock(mutex_);
    if (shard.failed || !shard.queue.IsNext(chunk.sequence)) return;
    if (!shard.queue.TryBeginAppending()) return;
  }
  absl::Status appended;
  chunk.samples->FlushPrefix([&](const SampleChunk& prefix) {
    progress_.skipped_rows += prefix.skips().size();
    appended = shard.builder->Append(prefix);
  });
  if (!appended.ok()) FailShard(shard, std::move(appended));
  const std::lock_guard lock(mutex_);
  shard.queue.EndAppending();
  chunk.transformed.Resize(0);
  ResumeParked();
  changed_.notify_all();
}

// Lets chunks go on that may, first those that their shards wait for.
void ShardScheduler::ResumeParked() {
  std::stable_partition(parked_.begin(), parked_.end(), [](const Parked& parked) {
    return parked.work.shard->failed ||
           parked.work.shard->queue.IsNext(parked.work.chunk->sequence);
  });
  for (auto parked = parked_.begin(); parked != parked_.end();) {
    if (!parked->work.shard->failed) {
      if (!ImageFits(parked->work, parked->bytes)) {
        ++parked;
        continue;
      }
      parked->work.chunk->admitted = true;
      BeginImage(*parked->work.chunk, parked->bytes);
    }
    Work work = std::move(parked->work);
    parked = parked_.erase(parked);
    to_probe_.push_back(std::move(work));
    arena_.enqueue(MakeTask(&ShardScheduler::ProbeOne));
  }
}

// The thread that brings a shard's next chunk appends it, and all that wait behind it.
void ShardScheduler::Deliver(Work work) {
  const std::shared_ptr<OpenShard> shard = std::move(work.shard);
  {
    const std::lock_guard lock(mutex_);
    shard->queue.Add(std::move(work.chunk));
    if (!shard->queue.TryBeginAppending()) return;
  }
  for (bool complete = false; !complete;) {
    std::unique_lock lock(mutex_);
    std::unique_ptr<InFlightChunk> next = shard->queue.TakeNext();
    if (next == nullptr) return CloseIfFailed(shard);
    const bool failed = shard->failed;
    lock.unlock();
    pool_.NoteProgress();  // many may wait behind this thread's chunk
    if (!failed) {
      absl::Status appended = shard->builder->Append(*next->samples);
      if (!appended.ok())
        FailShard(*shard, std::move(appended), /*of_input=*/!next->samples->status().ok());
    }
    complete = Retire(shard, std::move(next));
  }
  // Not on this thread, nor where chunks are computed: a shard that must be durable waits for the
  // disk.
  finishing_arena_.enqueue(MakeTask(&ShardScheduler::FinishOne));
}

void ShardScheduler::FinishOne() {
  std::shared_ptr<OpenShard> shard;
  {
    const std::lock_guard lock(mutex_);
    shard = std::move(to_finish_.front());
    to_finish_.pop_front();
  }
  FinishShard(shard);
  const std::lock_guard lock(mutex_);
  --finishing_;
  changed_.notify_all();
}

bool ShardScheduler::Retire(const std::shared_ptr<OpenShard>& shard,
                            std::unique_ptr<InFlightChunk> chunk) {
  chunk->samples->Reset();
  const std::lock_guard lock(mutex_);
  --in_flight_;
  --shard->in_flight;
  // Only now: any thread may finish the shard, and closes it if that fails.
  const bool complete = chunk->last && !shard->failed;
  if (complete) {
    ++finishing_;
    to_finish_.push_back(shard);
  }
  idle_chunks_.push_back(std::move(chunk->samples));
  chunk.reset();  // gives its memory back
  ResumeParked();
  // Run's thread has nothing to do while the readers have.
  if (to_read_.size() <= static_cast<size_t>(options_.jobs)) changed_.notify_all();
  return complete;
}

void ShardScheduler::FinishShard(const std::shared_ptr<OpenShard>& shard) {
  std::unique_lock lock(mutex_);
  if (shard->failed) return CloseIfFailed(shard);
  lock.unlock();
  const absl::Status planned = out_.AwaitPlan();
  if (!planned.ok()) {
    EndRun(*shard, planned);
    lock.lock();
    return CloseIfFailed(shard);
  }
  ++progress_.verifying;
  absl::StatusOr<ShardResult> result = shard->builder->Finish();
  --progress_.verifying;
  if (result.ok()) {
    progress_.bytes_out += result->file.bytes + result->index.bytes;
    if (out_.claims() != nullptr)
      out_.claims()->SetFinished(shard->number, plan_.shards()[shard->number].count);
    plan_.DropSlice(shard->number);
    Report(*std::move(result));
  } else {
    FailShard(*shard, result.status());
  }
  lock.lock();
  if (!result.ok()) return CloseIfFailed(shard);
  std::erase(open_, shard);
  changed_.notify_all();
}

void ShardScheduler::Report(ShardResult result) {
  const std::lock_guard lock(done_mutex_);
  ++progress_.done_shards;
  (*done_)(std::move(result));
}

void ShardScheduler::FailShard(OpenShard& shard, absl::Status status, bool of_input) {
  std::unique_lock lock(mutex_);
  shard.Fail();
  const FailedShards::Fate fate = failures_.Judge(
      shard.number, status, {of_input, shard.builder->verified(), progress_.bytes_in > 0});
  if (fate == FailedShards::Fate::kAgain) {
    progress_.done_rows -=
        std::min<uint64_t>(progress_.done_rows, plan_.shards()[shard.number].count);
  }
  if (fate == FailedShards::Fate::kEndsRun) failed_.Update(status);
  ResumeParked();
  lock.unlock();
  if (out_.claims() == nullptr || !SaysSomethingOfTheShard(fate, status)) return;
  (void)out_.claims()->NoteFailure(shard.number, status);  // the error itself is reported
}

// Discards a failed shard that has no chunks in flight, and puts it back to be built once more.
void ShardScheduler::CloseIfFailed(const std::shared_ptr<OpenShard>& shard) {
  if (!shard->failed || shard->in_flight > 0) return;
  if (std::erase(open_, shard) == 0) return;  // closed by another thread
  shard->builder.reset();                     // discards the staged file
  if (failed_.ok() && !failures_.is_set_aside(shard->number)) waiting_.push_front(shard->number);
  changed_.notify_all();
}

}  // namespace shardpack

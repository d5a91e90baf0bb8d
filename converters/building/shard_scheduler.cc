#include "converters/building/shard_scheduler.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <utility>

#include "formats/io/status_macros.h"
#include "images/codecs/inspect.h"

namespace shardpack {
namespace {

// A chunk is read by one thread without a pause: large enough that handing it over costs nothing
// beside it, small enough that a shard has many of them outstanding on a cold disk.
constexpr uint64_t kChunkRows = 128;
constexpr uint64_t kChunkBytes = 1 << 20;
// Largest number of open shards: each holds a write buffer and its expectations.
constexpr size_t kMaxOpenShards = 64;
constexpr int kAttempts = 2;
// A scratch that has changed an image of more than this gives its memory back.
constexpr uint64_t kScratchBytes = uint64_t{32} << 20;
// A chunk whose images take more than this part of the memory is appended in pieces.
constexpr uint64_t kGrownShare = 16;

}  // namespace

struct ShardScheduler::OpenShard {
  uint32_t number = 0;
  std::unique_ptr<ShardBuilder> builder;
  uint64_t next = 0, end = 0;  // positions still to hand out; Run's thread only
  uint64_t issued = 0;         // chunks; Run's thread only
  // Guarded by mutex_:
  uint64_t appended = 0;  // chunks
  uint64_t in_flight = 0;
  std::map<uint64_t, std::unique_ptr<Flight>> ready;
  bool appending = false;
  bool failed = false;
  bool closed = false;
};

struct ShardScheduler::Flight {
  std::unique_ptr<SampleChunk> chunk;
  uint64_t sequence = 0, first = 0, count = 0;
  uint64_t reserved_bytes = 0;
  uint64_t grown_bytes = 0;  // of them: what images became
  bool last = false;
  bool judged = false;
  bool admitted = false;  // memory for the next image is reserved
};

// A chunk whose next image waits for memory.
struct ShardScheduler::Parked {
  std::shared_ptr<OpenShard> shard;
  std::unique_ptr<Flight> flight;
  uint64_t bytes = 0;
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
      max_flights_(static_cast<size_t>(pool.threads() + 2 * options.jobs)),
      // One more than the workers we want: TBB counts the thread that waits here.
      threads_(tbb::global_control::max_allowed_parallelism, static_cast<size_t>(options.jobs) + 1),
      arena_(options.jobs, /*reserved_for_masters=*/0) {}

ShardScheduler::~ShardScheduler() = default;

absl::Status ShardScheduler::Run(std::vector<uint32_t> shards, const std::atomic<int>& stop,
                                 const std::function<void(ShardResult)>& done) noexcept {
  done_ = &done;
  waiting_.assign(shards.begin(), shards.end());
  size_t turn = 0;
  const size_t max_open = std::min(static_cast<size_t>(options_.jobs), kMaxOpenShards);
  std::unique_lock lock(mutex_);
  for (;;) {
    if (!failed_.ok() || stop.load() != 0) break;
    std::vector<std::shared_ptr<OpenShard>> issuing;
    for (const auto& shard : open_) {
      if (!shard->failed && shard->next < shard->end) issuing.push_back(shard);
    }
    if (issuing.size() < max_open && !waiting_.empty()) {
      lock.unlock();
      absl::Status opened = OpenNext();
      lock.lock();
      if (!opened.ok()) failed_ = opened;
      continue;
    }
    if (issuing.empty()) {
      if (open_.empty() && active_ == 0 && waiting_.empty()) break;
      changed_.wait_for(lock, std::chrono::milliseconds(100));
      continue;
    }
    const std::shared_ptr<OpenShard> shard = issuing[turn++ % issuing.size()];
    std::unique_ptr<Flight> flight = NextChunk(*shard);
    const auto has_room = [&] {
      return flights_ == 0 || (flights_ < max_flights_ &&
                               bytes_in_flight_ + flight->reserved_bytes <= options_.memory_bytes);
    };
    while (!has_room() && failed_.ok() && stop.load() == 0) {
      changed_.wait_for(lock, std::chrono::milliseconds(100));
    }
    if (!failed_.ok() || stop.load() != 0) break;
    ++active_;
    ++flights_;
    ++shard->in_flight;
    Reserve(static_cast<int64_t>(flight->reserved_bytes));
    flight->chunk = TakeChunk();
    lock.unlock();
    Launch(shard, std::move(flight));
    lock.lock();
  }
  if (stop.load() != 0) {
    // Chunks that wait to be changed or written are not worth waiting for; what is being finished
    // is.
    for (const auto& shard : open_) shard->failed = true;
    Unpark();
  }
  // What is in flight still refers to us.
  changed_.wait(lock, [&] { return active_ == 0; });
  open_.clear();
  if (!failed_.ok()) return failed_;
  if (stop.load() != 0 && progress_.done_shards < progress_.total_shards) {
    return absl::CancelledError("stopped by a signal");
  }
  return absl::OkStatus();
}

// Workers leave each other what they are at work on, as long as there is something else to do.
absl::StatusOr<uint32_t> ShardScheduler::TakeWaiting() {
  // Read before the lock is taken: a slow disk would hold up every thread.
  const bool shares = out_.options().shards_range.has_value();
  ASSIGN_OR_RETURN(const std::set<std::string> held,
                   shares ? out_.HeldByOthers() : std::set<std::string>());
  const std::lock_guard lock(mutex_);
  auto next = waiting_.begin();
  if (shares) {
    next = std::find_if(waiting_.begin(), waiting_.end(), [&](uint32_t number) {
      return !held.contains(plan_.shards()[number].name);
    });
    if (next == waiting_.end()) next = waiting_.begin();
  }
  const uint32_t number = *next;
  waiting_.erase(next);
  ++attempts_[number];
  return number;
}

absl::Status ShardScheduler::OpenNext() {
  auto shard = std::make_shared<OpenShard>();
  ASSIGN_OR_RETURN(const uint32_t taken, TakeWaiting());
  shard->number = taken;
  if (out_.options().shards_range) {
    ASSIGN_OR_RETURN(std::optional<ShardResult> theirs, out_.FinishedByOther(plan_, shard->number));
    if (theirs.has_value()) {
      const std::lock_guard lock(mutex_);
      progress_.done_rows += plan_.shards()[shard->number].count;
      progress_.skipped_rows += theirs->skips.size();
      Done(*std::move(theirs));
      return absl::OkStatus();
    }
  }
  ASSIGN_OR_RETURN(shard->builder, ShardBuilder::Create(plan_, shard->number, out_));
  shard->next = plan_.shards()[shard->number].first;
  shard->end = shard->next + plan_.shards()[shard->number].count;
  const std::lock_guard lock(mutex_);
  open_.push_back(std::move(shard));
  return absl::OkStatus();
}

std::unique_ptr<ShardScheduler::Flight> ShardScheduler::NextChunk(OpenShard& shard) {
  auto flight = std::make_unique<Flight>();
  flight->sequence = shard.issued++;
  flight->first = shard.next;
  uint64_t bytes = 0, work_bytes = 0;
  const uint64_t out_bytes = RawShape(plan_.options().pixels).value_or(FixedShape()).bytes();
  while (shard.next < shard.end && shard.next - flight->first < kChunkRows &&
         work_bytes < kChunkBytes) {
    const uint64_t sample_bytes = plan_.listing().SampleBytes(plan_.row(shard.next++));
    bytes += sample_bytes;
    work_bytes += std::max(sample_bytes, out_bytes);
  }
  flight->count = shard.next - flight->first;
  flight->last = shard.next == shard.end;
  flight->reserved_bytes =
      bytes + flight->count * 128;  // the arena's rounding and the sample's own fields
  return flight;
}

std::unique_ptr<SampleChunk> ShardScheduler::TakeChunk() {
  if (idle_chunks_.empty()) return std::make_unique<SampleChunk>();
  std::unique_ptr<SampleChunk> chunk = std::move(idle_chunks_.back());
  idle_chunks_.pop_back();
  return chunk;
}

void ShardScheduler::Launch(std::shared_ptr<OpenShard> shard, std::unique_ptr<Flight> flight) {
  ++progress_.reading;
  // std::function wants a copyable task.
  pool_.Submit([this, shard = std::move(shard), raw = flight.release()] {
    LoadSamples(plan_, source_, raw->first, raw->count, *raw->chunk);
    --progress_.reading;
    ++progress_.computing;
    // TBB would abort on an exception, and say nothing of use.
    arena_.enqueue([this, shard, raw]() noexcept { Judge(shard, std::unique_ptr<Flight>(raw)); });
  });
}

void ShardScheduler::Judge(const std::shared_ptr<OpenShard>& shard,
                           std::unique_ptr<Flight> flight) {
  if (!flight->judged) JudgeSamples(plan_, *flight->chunk);
  flight->judged = true;
  if (transform_ != nullptr && !Transform(shard, flight)) return;
  progress_.bytes_in += flight->chunk->bytes_in;
  progress_.skipped_rows += flight->chunk->skips.size();
  progress_.done_rows += flight->count;
  Deliver(shard, std::move(flight));
  --progress_.computing;
  const std::lock_guard lock(mutex_);  // notified under the lock: Run may return right after
  --active_;
  changed_.notify_all();
}

// False when the chunk was put aside.
bool ShardScheduler::Transform(const std::shared_ptr<OpenShard>& shard,
                               std::unique_ptr<Flight>& flight) {
  std::unique_ptr<TransformScratch> scratch = TakeScratch();
  SampleChunk& chunk = *flight->chunk;
  Step step = Step::kGo;
  while (chunk.next < chunk.samples.size() && step == Step::kGo) {
    const PreparedSample& sample = chunk.samples[chunk.next];
    const TransformTarget target = transform_->Decide(sample.fields[0].bytes, sample.image);
    uint64_t bytes = ImageTransform::WorkingBytes(sample.image, target);
    if (plan_.options().compute_stats) bytes += DecodeMemoryBytes(sample.image, /*scans=*/1);
    step = BeginImage(shard, flight, bytes);
    if (step != Step::kGo) break;
    const uint64_t grown_bytes = TransformNext(plan_, *transform_, target, *scratch, chunk);
    if (bytes > kScratchBytes) scratch->Trim();
    EndImage(*flight, bytes, grown_bytes);
    if (flight->grown_bytes > options_.memory_bytes / kGrownShare) AppendEarly(*shard, *flight);
  }
  if (step != Step::kParked) HashSamples(chunk);
  const std::lock_guard lock(mutex_);
  idle_scratches_.push_back(std::move(scratch));
  return step != Step::kParked;
}

std::unique_ptr<TransformScratch> ShardScheduler::TakeScratch() {
  const std::lock_guard lock(mutex_);
  if (idle_scratches_.empty()) return std::make_unique<TransformScratch>();
  std::unique_ptr<TransformScratch> scratch = std::move(idle_scratches_.back());
  idle_scratches_.pop_back();
  return scratch;
}

bool ShardScheduler::Fits(const OpenShard& shard, const Flight& flight, uint64_t bytes) const {
  return bytes_in_flight_ + bytes <= options_.memory_bytes ||
         (working_ == 0 && flight.sequence == shard.appended);
}

void ShardScheduler::Reserve(int64_t bytes) {
  bytes_in_flight_ += static_cast<uint64_t>(bytes);
  progress_.memory_bytes += bytes;
}

ShardScheduler::Step ShardScheduler::BeginImage(const std::shared_ptr<OpenShard>& shard,
                                                std::unique_ptr<Flight>& flight, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const bool admitted = std::exchange(flight->admitted, false);
  if (admitted) return Step::kGo;
  if (shard->failed) return Step::kGiveUp;
  if (!Fits(*shard, *flight, bytes)) {
    parked_.push_back({shard, std::move(flight), bytes});
    return Step::kParked;
  }
  ++working_;
  Reserve(static_cast<int64_t>(bytes));
  return Step::kGo;
}

void ShardScheduler::EndImage(Flight& flight, uint64_t bytes, uint64_t grown_bytes) {
  const std::lock_guard lock(mutex_);
  --working_;
  flight.reserved_bytes += grown_bytes;
  flight.grown_bytes += grown_bytes;
  Reserve(static_cast<int64_t>(grown_bytes) - static_cast<int64_t>(bytes));
  Unpark();
}

// The images of a small file may be large: the chunk whose turn it is need not hold all of them.
void ShardScheduler::AppendEarly(OpenShard& shard, Flight& flight) {
  {
    const std::lock_guard lock(mutex_);
    if (flight.sequence != shard.appended || shard.appending || shard.failed) return;
    shard.appending =
        true;  // whoever comes meanwhile leaves its chunk to be appended after this one
  }
  absl::Status appended;
  HandOver(*flight.chunk, [&](const SampleChunk& ready) {
    progress_.skipped_rows += ready.skips.size();
    appended = shard.builder->Append(ready);
  });
  if (!appended.ok()) FailShard(shard, std::move(appended));
  const std::lock_guard lock(mutex_);
  shard.appending = false;
  Reserve(-static_cast<int64_t>(flight.grown_bytes));
  flight.reserved_bytes -= std::exchange(flight.grown_bytes, 0);
  Unpark();
}

// Under mutex_: lets go on what may, first the chunks that their shards wait for.
void ShardScheduler::Unpark() {
  std::stable_partition(parked_.begin(), parked_.end(), [](const Parked& parked) {
    return parked.shard->failed || parked.flight->sequence == parked.shard->appended;
  });
  std::erase_if(parked_, [&](Parked& parked) {
    if (!parked.shard->failed) {
      if (!Fits(*parked.shard, *parked.flight, parked.bytes)) return false;
      parked.flight->admitted = true;
      ++working_;
      Reserve(static_cast<int64_t>(parked.bytes));
    }
    arena_.enqueue([this, shard = parked.shard, raw = parked.flight.release()]() noexcept {
      Judge(shard, std::unique_ptr<Flight>(raw));
    });
    return true;
  });
}

// The thread that brings a shard's next chunk appends it, and all that wait behind it.
void ShardScheduler::Deliver(const std::shared_ptr<OpenShard>& shard,
                             std::unique_ptr<Flight> flight) {
  std::unique_lock lock(mutex_);
  shard->ready.emplace(flight->sequence, std::move(flight));
  if (shard->appending) return;
  shard->appending = true;
  bool complete = false;
  while (!shard->ready.empty() &&
         (shard->failed || shard->ready.begin()->first == shard->appended)) {
    std::unique_ptr<Flight> next = std::move(shard->ready.begin()->second);
    shard->ready.erase(shard->ready.begin());
    ++shard->appended;
    const bool failed = shard->failed;
    complete = next->last && !failed;
    lock.unlock();
    if (!failed) AppendOne(*shard, *next);
    Land(std::move(next));
    lock.lock();
    --shard->in_flight;
  }
  shard->appending = false;
  if (complete) {
    lock.unlock();
    FinishShard(shard);
    lock.lock();
  }
  if (shard->failed && shard->in_flight == 0 && !shard->closed) {
    shard->closed = true;
    open_.erase(std::find(open_.begin(), open_.end(), shard));
    shard->builder.reset();  // discards the staged file before the shard is built anew
    if (failed_.ok()) waiting_.push_front(shard->number);
  }
}

void ShardScheduler::AppendOne(OpenShard& shard, Flight& flight) {
  absl::Status appended = shard.builder->Append(*flight.chunk);
  if (!appended.ok()) FailShard(shard, std::move(appended));
}

void ShardScheduler::FinishShard(const std::shared_ptr<OpenShard>& shard) {
  {
    const std::lock_guard lock(mutex_);
    if (shard->failed) return;
  }
  ++progress_.proving;
  absl::StatusOr<ShardResult> result = shard->builder->Finish();
  --progress_.proving;
  if (!result.ok()) return FailShard(*shard, result.status());
  const std::lock_guard lock(mutex_);
  progress_.bytes_out += result->file.bytes + result->index.bytes;
  shard->closed = true;
  open_.erase(std::find(open_.begin(), open_.end(), shard));
  Done(*std::move(result));
}

// Under mutex_.
void ShardScheduler::Done(ShardResult result) {
  ++progress_.done_shards;
  (*done_)(std::move(result));
}

void ShardScheduler::FailShard(OpenShard& shard, absl::Status status) {
  const std::lock_guard lock(mutex_);
  shard.failed = true;
  // No second try where it cannot help: no space, or a sample that the format refuses.
  const bool again = (absl::IsUnavailable(status) || absl::IsDataLoss(status)) &&
                     attempts_[shard.number] < kAttempts;
  if (again) {
    progress_.done_rows -=
        std::min<uint64_t>(progress_.done_rows, plan_.shards()[shard.number].count);
  } else if (failed_.ok()) {
    failed_ = std::move(status);
  }
  Unpark();
}

void ShardScheduler::Land(std::unique_ptr<Flight> flight) {
  const std::lock_guard lock(mutex_);
  --flights_;
  Reserve(-static_cast<int64_t>(flight->reserved_bytes));
  flight->chunk->Reset();
  idle_chunks_.push_back(std::move(flight->chunk));
  Unpark();
  changed_.notify_all();
}

}  // namespace shardpack

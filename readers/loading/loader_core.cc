#include "readers/loading/loader_core.h"

#include <algorithm>
#include <exception>
#include <string>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "formats/io/error_facts.h"
#include "formats/io/file.h"
#include "formats/io/resources.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

using Clock = std::chrono::steady_clock;

// Attempts per bad sample before the dataset counts as unusable.
constexpr uint64_t kMaxSubstitutes = 100;

// How often a waiting call checks whether it is interrupted.
constexpr std::chrono::milliseconds kLook{50};

template <typename T>
T TakeFirst(std::deque<T>& queue) {
  T first = std::move(queue.front());
  queue.pop_front();
  return first;
}

}  // namespace

absl::Status Loader::Core::Start(const std::optional<Cursor>& cursor) {
  cpu_threads_wait_.store(options_.io_threads <= 0);
  if (cursor) {
    std::optional<uint32_t> augment = augment_;
    if (options_.other_augment) augment = std::nullopt;
    if (augment && decoding_ == nullptr && options_.image_infos) {
      augment = std::nullopt;
      unchecked_augment_ = cursor->augment;
    }
    RETURN_IF_ERROR(CheckCursor(*cursor, dataset_, order_, augment));
    if (unchecked_augment_) augment_ = *unchecked_augment_;
    const bool at_end = cursor->step == order_.steps();  // the start of the next epoch
    epoch_ = plan_epoch_ = cursor->epoch + (at_end ? 1 : 0);
    step_ = plan_step_ = at_end ? 0 : cursor->step;
  }
  try {
    for (int i = 0; i < options_.threads; ++i)
      cpu_threads_.emplace_back([this] { RunThread(&Core::CpuThread); });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start ", options_.threads, " threads: ", error.what()));
  }
  return absl::OkStatus();
}

Loader::Core::~Core() {
  Stop();
  for (std::thread& thread : cpu_threads_) thread.join();
  for (std::thread& thread : io_threads_) thread.join();
}

void Loader::Core::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_.store(true);
  }
  cpu_work_.notify_all();
  io_work_.notify_all();
  ready_.notify_all();
  PokePools();
}

void Loader::Core::PokePools() {
  fetcher_.pool()->Poke();
  if (decoding_ != nullptr) decoding_->pool->Poke();
}

absl::Status Loader::Core::CheckProcess() const {
  if (InOwnProcess()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "the loader was opened in another process: threads do not survive a fork; open it after");
}

// An exception (for lack of memory, or from an index that changed in place) ends the loader, not
// the process.
void Loader::Core::RunThread(void (Core::*work)()) {
  absl::Status thrown;
  try {
    (this->*work)();
    return;
  } catch (const std::exception& error) {
    thrown = StatusOfException("loading", error);
  }
  {
    const std::lock_guard lock(mutex_);
    if (thrown_.ok()) thrown_ = std::move(thrown);
  }
  Stop();
}

void Loader::Core::CpuThread() {
  std::unique_lock lock(mutex_);
  while (!stop_.load()) {
    if (!decode_tasks_.empty()) {  // first, because they belong to the oldest batches
      const Task task = TakeFirst(decode_tasks_);
      lock.unlock();
      DecodePiece(task);
      lock.lock();
    } else if (!tasks_.empty()) {
      const Task task = TakeFirst(tasks_);
      lock.unlock();
      ReadPiece(task, cpu_threads_wait_.load());
      lock.lock();
    } else if (CanPlan()) {
      planning_ = true;
      auto batch = std::make_unique<Pending>();
      batch->epoch = plan_epoch_;
      batch->step = plan_step_;
      if (++plan_step_ == order_.steps()) {
        plan_step_ = 0;
        ++plan_epoch_;
      }
      lock.unlock();
      PlanNext(std::move(batch));
      lock.lock();
    } else {
      cpu_work_.wait(lock);
    }
  }
}

void Loader::Core::IoThread() {
  std::unique_lock lock(mutex_);
  while (!stop_.load()) {
    if (disk_tasks_.empty()) {
      io_work_.wait(lock);
      continue;
    }
    const Task task = TakeFirst(disk_tasks_);
    lock.unlock();
    ReadPiece(task, true);
    lock.lock();
  }
}

// Plans one batch at a time, so that the earliest one gets memory first.
bool Loader::Core::CanPlan() const {
  return !planning_ && pending_.size() < options_.prefetch_batches &&
         (options_.epochs == 0 || plan_epoch_ < options_.epochs);
}

SlabPool::Patience Loader::Core::PatienceForMemory() const {
  if (stop_.load()) return SlabPool::Patience::kGiveUp;
  // The consumer holds all memory and waits for this batch, or for one that this thread, the only
  // CPU thread, must still decode.
  if (consumer_waits_.load() && (pending_count_.load() == 0 || options_.threads == 1))
    return SlabPool::Patience::kUrgent;
  return SlabPool::Patience::kWait;
}

absl::Status Loader::Core::Prepare(Pending& batch) {
  const uint32_t global_batch = order_.spec().global_batch;
  std::vector<uint64_t> ids(rank_.slots(global_batch));
  order_.Ids(batch.epoch, batch.step, rank_.first_slot(global_batch), ids);
  const Clock::time_point start = Clock::now();
  batch.content->epoch = batch.epoch;
  batch.content->step = batch.step;
  RETURN_IF_ERROR(fetcher_.Plan(ids, batch.plan, *batch.content));
  planned_.Add(1, batch.plan.bytes, start);
  const Clock::time_point asked = Clock::now();
  const auto patience = [this] { return PatienceForMemory(); };
  absl::StatusOr<SlabLease> lease = fetcher_.pool()->Acquire(batch.plan.run_slabs, patience);
  if (lease.ok() && decoding_ != nullptr) {
    const size_t one = 1;
    ASSIGN_OR_RETURN(SlabLease pixels, decoding_->pool->Acquire(std::span(&one, 1), patience));
    PlacePixels(std::move(pixels), *batch.content);
  }
  memory_wait_ns_.fetch_add(NsSince(asked), std::memory_order_relaxed);
  if (!lease.ok()) return lease.status();
  fetcher_.Place(*std::move(lease), batch.plan, *batch.content);
  return absl::OkStatus();
}

void Loader::Core::PlanNext(std::unique_ptr<Pending> batch) {
  Pending* const added = batch.get();
  added->status = Prepare(*added);
  std::vector<Task> tasks;
  if (added->status.ok()) {
    const FetchPlan& plan = added->plan;
    for (size_t begin = 0; begin < plan.items.size(); begin = tasks.back().range.end)
      tasks.push_back({added, {begin, fetcher_.PieceEnd(plan, begin)}});
  }
  added->left.store(tasks.size());
  {
    const std::lock_guard lock(mutex_);
    planning_ = false;
    pending_.push_back(std::move(batch));
    pending_count_.store(pending_.size());
    tasks_.insert(tasks_.end(), tasks.begin(), tasks.end());
  }
  cpu_work_.notify_all();
  // If there are tasks, the batch may be gone already: other threads have read it and the consumer
  // has finished with it.
  if (!tasks.empty()) return;
  if (added->status.ok()) {
    FinishReading(*added);
  } else {
    Complete(*added);
  }
}

void Loader::Core::ReadPiece(const Task& task, bool may_wait) {
  Pending& batch = *task.batch;
  const Clock::time_point start = Clock::now();
  std::vector<ItemRange> missed;
  std::vector<BadRead> bad;
  fetcher_.Read(batch.plan, task.range, may_wait ? nullptr : &missed, bad);
  uint64_t items = task.range.end - task.range.begin, bytes = 0;
  for (size_t i = task.range.begin; i < task.range.end; ++i) bytes += batch.plan.items[i].length;
  for (const ItemRange& range : missed) {
    items -= range.end - range.begin;
    for (size_t i = range.begin; i < range.end; ++i) bytes -= batch.plan.items[i].length;
  }
  const bool on_disk = may_wait && !cpu_threads_wait_.load();
  (on_disk ? disk_read_ : read_).Add(items, bytes, start);
  batch.AddBad(bad);
  if (!missed.empty()) {
    batch.left.fetch_add(missed.size());
    {
      const std::lock_guard lock(mutex_);
      for (const ItemRange& range : missed) disk_tasks_.push_back({&batch, range});
      StartIoThreads();
    }
    io_work_.notify_all();
    if (cpu_threads_wait_.load()) cpu_work_.notify_all();
  }
  if (batch.left.fetch_sub(1) == 1) FinishReading(batch);
}

void Loader::Core::FinishReading(Pending& batch) {
  if (decoding_ == nullptr) {
    Complete(batch);
    return;
  }
  const size_t slots = batch.content->ids.size();
  batch.unread.assign(slots, false);
  for (const BadRead& bad : batch.bad) batch.unread[bad.slot] = true;
  size_t piece = std::max<size_t>(slots / (4 * static_cast<size_t>(options_.threads)), 1);
  if (options_.mix)
    piece = (piece + options_.mix->group - 1) / options_.mix->group * options_.mix->group;
  batch.left.store((slots + piece - 1) / piece);
  {
    const std::lock_guard lock(mutex_);
    for (size_t begin = 0; begin < slots; begin += piece)
      decode_tasks_.push_back({&batch, {begin, std::min(begin + piece, slots)}});
  }
  cpu_work_.notify_all();
}

// Called with mutex_ held. Failing to start further threads is fine once there is one.
void Loader::Core::StartIoThreads() {
  const size_t wanted =
      std::min<size_t>(disk_tasks_.size(), static_cast<size_t>(options_.io_threads));
  while (io_threads_.size() < wanted && !stop_.load()) {
    try {
      io_threads_.emplace_back([this] { RunThread(&Core::IoThread); });
    } catch (const std::system_error&) {
      if (!io_threads_.empty()) return;
      cpu_threads_wait_.store(true);
      tasks_.insert(tasks_.end(), disk_tasks_.begin(), disk_tasks_.end());
      disk_tasks_.clear();
      return;
    }
  }
}

void Loader::Core::Complete(Pending& batch) {
  if (!batch.bad.empty()) batch.status = MendBadSamples(batch);
  if (options_.mix && batch.status.ok()) batch.status = FillMixed(batch);
  if (options_.image_infos) batch.content->infos = std::move(batch.plan.infos);
  if (decoding_ != nullptr && batch.status.ok()) {
    HostBatch::Content& content = *batch.content;
    JoinObjects(content);
    const size_t slots = content.ids.size();
    std::fill_n(content.bytes.begin() + static_cast<ptrdiff_t>(decoding_->field * slots), slots,
                Bytes());
    if (options_.fields.size() == 1) {  // the slabs are no longer needed
      content.slabs.clear();
      content.lease.Return();
      content.substitutes.clear();
    }
  }
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    batch.ready = true;
    first = pending_.front().get() == &batch;
  }
  if (first) ready_.notify_all();
}

absl::Status Loader::Core::MendBadSamples(Pending& batch) {
  std::sort(batch.bad.begin(), batch.bad.end(),
            [](const BadRead& a, const BadRead& b) { return a.slot < b.slot; });
  if (options_.bad_samples == BadSamples::kFail) return batch.bad.front().why;
  // An error that is not about the sample, such as too few descriptors, must not cause a
  // substitution.
  for (const BadRead& bad : batch.bad) {
    if (!IsAboutThePath(bad.why)) return bad.why;
  }
  for (size_t i = 0; i < batch.bad.size(); ++i) {
    if (i > 0 && batch.bad[i].slot == batch.bad[i - 1].slot) continue;
    RETURN_IF_ERROR(Substitute(batch, batch.bad[i].slot, batch.bad[i].why));
  }
  if (!options_.mix) return absl::OkStatus();
  // Their groups wait for the substitutes.
  const uint32_t group = options_.mix->group;
  for (size_t i = 0; i < batch.bad.size(); ++i) {
    const uint32_t first = batch.bad[i].slot / group * group;
    if (i > 0 && batch.bad[i - 1].slot >= first) continue;
    // A decoder stops at the first bad sample of a group, so there may be more.
    for (std::vector<BadRead> more;; more.clear()) {
      DecodeGroup(batch, first, more);
      if (more.empty()) break;
      if (!IsAboutThePath(more.front().why)) return more.front().why;
      RETURN_IF_ERROR(Substitute(batch, more.front().slot, more.front().why));
    }
  }
  return absl::OkStatus();
}

// The rule depends only on the order, so every reader of the same shards finds the same substitute.
absl::Status Loader::Core::Substitute(Pending& batch, uint32_t slot, const absl::Status& why) {
  if (bad_total_.fetch_add(1) >= options_.max_bad_samples) {
    return Reworded(why,
                    absl::StrCat("more than ", options_.max_bad_samples,
                                 " bad samples; the last: ", std::string(why.message())),
                    absl::StatusCode::kDataLoss);
  }
  const uint32_t global_batch = order_.spec().global_batch;
  const uint64_t here = batch.step * global_batch + rank_.first_slot(global_batch) + slot;
  const uint64_t wanted = batch.content->ids[slot];
  const uint64_t tries = std::min(kMaxSubstitutes, order_.samples() - 1);
  for (uint64_t k = 1; k <= tries; ++k) {
    if (stop_.load()) return absl::CancelledError("stopped while a bad sample was substituted");
    const uint64_t position = (here + k) % order_.samples();
    const uint64_t id = order_.IdAt(batch.epoch, position / global_batch,
                                    static_cast<uint32_t>(position % global_batch));
    if (id == wanted || id == kPaddingId) continue;
    FetchPlan plan;
    absl::StatusOr<std::unique_ptr<HostBatch::Content>> other =
        fetcher_.FetchContent(std::span(&id, 1), plan);
    if (!other.ok() && !IsAboutThePath(other.status())) return other.status();
    if (!other.ok()) continue;  // bad as well
    HostBatch::Content& content = *batch.content;
    const size_t slots = content.ids.size();
    if (decoding_ != nullptr) {
      content.ids[slot] = id;  // determines its random crop
      if (!DecodeSlot(batch, slot, **other, 0, plan.infos[0]).ok()) continue;
    }
    for (size_t f = 0; f < options_.fields.size(); ++f)
      content.bytes[f * slots + slot] = (*other)->bytes[f];
    content.labels[slot] = (*other)->labels[0];
    content.ids[slot] = id;
    if (!batch.plan.infos.empty()) batch.plan.infos[slot] = plan.infos[0];
    content.status[slot] = {SampleState::kSubstituted, wanted, std::string(why.message())};
    content.slabs.insert(content.slabs.end(), (*other)->slabs.begin(), (*other)->slabs.end());
    content.substitutes.push_back(std::move((*other)->lease));
    batch.reports.push_back({batch.epoch, batch.step, wanted, std::string(why.message())});
    return absl::OkStatus();
  }
  return Reworded(
      why,
      absl::StrCat("none of the ", tries,
                   " samples after a bad one can be read; it was: ", std::string(why.message())),
      absl::StatusCode::kDataLoss);
}

absl::StatusOr<std::optional<HostBatch>> Loader::Core::Next(const Interrupted& interrupted) {
  return Take([&](std::unique_lock<std::mutex>& lock, const auto& ready) {
    while (!ready_.wait_for(lock, kLook, ready)) {
      if (interrupted == nullptr) continue;
      lock.unlock();
      const bool give_up = interrupted();
      lock.lock();
      if (give_up) return absl::CancelledError("waiting for a batch was interrupted");
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::optional<HostBatch>> Loader::Core::NextWithin(std::chrono::milliseconds most) {
  return Take([&](std::unique_lock<std::mutex>& lock, const auto& ready) {
    if (ready_.wait_for(lock, most, ready)) return absl::OkStatus();
    return absl::DeadlineExceededError("no batch is ready yet");
  });
}

template <typename Wait>
absl::StatusOr<std::optional<HostBatch>> Loader::Core::Take(const Wait& wait) {
  RETURN_IF_ERROR(CheckProcess());
  const Clock::time_point start = Clock::now();
  std::unique_lock lock(mutex_);
  RETURN_IF_ERROR(CheckAugmentation(0));  // nobody has said otherwise
  if (epoch_ended_) {
    epoch_ended_ = false;
    return std::nullopt;
  }
  if (options_.epochs > 0 && epoch_ >= options_.epochs) return std::nullopt;
  const auto ready = [this] {
    return stop_.load() || (!pending_.empty() && pending_.front()->ready);
  };
  if (!ready()) {
    consumer_waits_.store(true);
    lock.unlock();
    PokePools();
    lock.lock();
    if (absl::Status waited = wait(lock, ready); !waited.ok()) {
      // A consumer that asks again and again waits in between, too: it may hold all memory.
      if (!absl::IsDeadlineExceeded(waited)) consumer_waits_.store(false);
      delivered_.consumer_wait_ns += NsSince(start);
      return waited;
    }
  }
  consumer_waits_.store(false);
  delivered_.consumer_wait_ns += NsSince(start);
  if (!thrown_.ok()) return thrown_;
  if (stop_.load()) return absl::CancelledError("the loader was stopped");
  if (!pending_.front()->status.ok()) return pending_.front()->status;  // repeated on every call
  const std::unique_ptr<Pending> batch = TakeFirst(pending_);
  pending_count_.store(pending_.size());
  if (++step_ == order_.steps()) {
    step_ = 0;
    ++epoch_;
    epoch_ended_ = true;
  }
  ++delivered_.batches;
  delivered_.substituted += batch->reports.size();
  for (const SampleStatus& status : batch->content->status)
    ++(status.state == SampleState::kPadding ? delivered_.padding : delivered_.samples);
  bad_samples_.insert(bad_samples_.end(), batch->reports.begin(), batch->reports.end());
  delivered_.next.Add(NsSince(start));
  lock.unlock();
  cpu_work_.notify_one();
  return HostBatch(std::move(batch->content));
}

Cursor Loader::Core::cursor() const {
  const std::lock_guard lock(mutex_);
  return MakeCursor(dataset_, order_, epoch_, step_, augment_);
}

absl::Status Loader::Core::CheckAugmentation(uint32_t augment) const {
  if (!unchecked_augment_) return absl::OkStatus();
  return CheckCursor(MakeCursor(dataset_, order_, epoch_, step_, *unchecked_augment_), dataset_,
                     order_, augment);
}

absl::Status Loader::Core::SetAugmentation(uint32_t augment, std::string facts) {
  RETURN_IF_ERROR(CheckProcess());
  if (decoding_ != nullptr) {
    return absl::InvalidArgumentError(
        "the Loader decodes, so it also augments, by the plan of its own options");
  }
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(CheckAugmentation(augment));
  unchecked_augment_ = std::nullopt;
  augment_ = augment;
  delivered_.augmentation = std::move(facts);
  delivered_.augmented_by_caller = true;
  return absl::OkStatus();
}

absl::StatusOr<Cursor> Loader::Core::CursorOf(uint32_t augment) const {
  RETURN_IF_ERROR(CheckProcess());
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(CheckAugmentation(augment));
  return MakeCursor(dataset_, order_, epoch_, step_, augment);
}

LoaderStats Loader::Core::stats() const {
  const std::lock_guard lock(mutex_);
  LoaderStats stats = delivered_;
  stats.plan = planned_.Snapshot();
  stats.read = read_.Snapshot();
  stats.disk_read = disk_read_.Snapshot();
  stats.decode = decoded_.Snapshot();
  stats.memory_wait_ns = memory_wait_ns_.load(std::memory_order_relaxed);
  stats.wall_ns = NsSince(opened_);
  stats.cpu_threads = static_cast<int>(cpu_threads_.size());
  stats.io_threads = static_cast<int>(io_threads_.size());
  stats.slab_bytes = fetcher_.pool()->slab_bytes();
  stats.slabs = fetcher_.pool()->slabs();
  stats.peak_slabs = fetcher_.pool()->peak_slabs();
  stats.overflow_bytes = fetcher_.pool()->overflow_bytes() +
                         (decoding_ == nullptr ? 0 : decoding_->pool->overflow_bytes());
  return stats;
}

std::vector<BadSample> Loader::Core::TakeBadSamples() {
  const std::lock_guard lock(mutex_);
  return std::exchange(bad_samples_, {});
}

}  // namespace shardpack

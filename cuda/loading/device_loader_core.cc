#include "cuda/loading/device_loader_core.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "formats/io/ns_since.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

// How often a waiting thread looks whether the device was lost, or it is interrupted.
constexpr milliseconds kLook{50};
constexpr microseconds kMinNap{20}, kMaxNap{1000};

absl::Status Stopped() { return absl::CancelledError("the loader was stopped"); }

void FillInfo(const HostBatch& batch, BatchInfo& info) {
  info.epoch = batch.epoch();
  info.step = batch.step();
  info.ids.assign(batch.ids().begin(), batch.ids().end());
  info.labels.assign(batch.labels().begin(), batch.labels().end());
  info.status.assign(batch.status().begin(), batch.status().end());
}

// The slabs keep their order; each sample is found in one of them. A field that is decoded has no
// bytes on the device.
void CopySlabs(const HostBatch& batch, std::optional<size_t> decoded_field, DeviceBuffer& buffer,
               std::vector<UploadCopy>& copies) {
  size_t slab_offset = 0;
  std::vector<size_t> slab_offsets;
  for (const Bytes slab : batch.slabs()) {
    slab_offsets.push_back(slab_offset);
    copies.push_back({slab.data(), buffer.raw + slab_offset, slab.size()});
    slab_offset += DeviceAligned(slab.size());
  }
  buffer.fields.assign(batch.fields() * batch.size(), {});
  for (size_t field = 0; field < batch.fields(); ++field) {
    if (field == decoded_field) continue;
    for (size_t slot = 0; slot < batch.size(); ++slot) {
      if (!batch.has(field, slot)) continue;
      const Bytes bytes = batch.bytes(field, slot);
      for (size_t i = 0; i < slab_offsets.size(); ++i) {
        const Bytes slab = batch.slabs()[i];
        if (bytes.data() < slab.data() || bytes.data() >= slab.data() + slab.size()) continue;
        const auto offset = static_cast<size_t>(bytes.data() - slab.data());
        buffer.fields[field * batch.size() + slot] = {buffer.raw + slab_offsets[i] + offset,
                                                      bytes.size()};
        break;
      }
    }
  }
}

}  // namespace

DeviceLoader::Core::Core(Loader loader, const DeviceOptions& options, Device& device)
    : device_(device),
      options_(options),
      loader_(std::move(loader)),
      staging_memory_(device, {.log = options.log}),
      cursor_(loader_.cursor()) {}

DeviceLoader::Core::~Core() {
  Stop();
  if (thread_.joinable()) thread_.join();
  uploader_.reset();
  if (work_stream_ && !device_.lost()) {
    if (device_.WaitUntilIdle(*work_stream_, options_.stop_patience)) {
      (void)device_.DestroyStream(*work_stream_);
    } else if (options_.log != nullptr) {
      options_.log("the device does not end its work; its memory is left to the process's end");
    }
  }
}

void DeviceLoader::Core::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_.store(true);
  }
  loader_.Stop();
  if (buffers_ != nullptr) buffers_->Poke();
  ready_.notify_all();
  room_.notify_all();
}

DeviceLoader::Core::Taken DeviceLoader::Core::TakeFromLoader(const Interrupted& interrupted) {
  Taken taken{.batch = loader_.Next(interrupted), .after = {}, .bad = {}};
  taken.after = loader_.cursor();
  taken.bad = loader_.TakeBadSamples();
  return taken;
}

void DeviceLoader::Core::FellBack(const std::string& why) {
  if (options_.log != nullptr) options_.log(why);
  const std::lock_guard lock(mutex_);
  if (stats_.fallbacks++ == 0) stats_.why_fallback = why;
}

absl::Status DeviceLoader::Core::UploadAll() {
  RETURN_IF_ERROR(device_.EnterThread());
  RETURN_IF_ERROR(route_->Begin(uploader_->stream()));
  {
    const std::lock_guard lock(mutex_);
    route_->FillStats(stats_);
  }
  for (;;) {
    // While a copy runs, one more waits; with more the Loader would lack memory to read ahead, or
    // allocate some.
    RETURN_IF_ERROR(WaitForUploads());
    ASSIGN_OR_RETURN(Taken taken, TakeNext());
    if (!taken.batch.ok() || !taken.batch->has_value()) RETURN_IF_ERROR(SettleLast());
    RETURN_IF_ERROR(taken.batch.status());
    if (taken.batch->has_value()) {
      RETURN_IF_ERROR(UploadOne(std::move(taken)));
    } else {
      Deliver({.buffer = nullptr, .after = taken.after, .bad = std::move(taken.bad)});
    }
    if (stop_.load()) return Stopped();
  }
}

void DeviceLoader::Core::Fail(const absl::Status& status) {
  {
    const std::lock_guard lock(mutex_);
    failed_.Update(status);  // Next may have seen that the device is lost first
  }
  ready_.notify_all();
}

void DeviceLoader::Core::Deliver(Ready ready) {
  {
    std::unique_lock lock(mutex_);
    SetDoing(Doing::kQueue);
    // Ends of epochs need no buffer, so they are what this bounds.
    room_.wait(lock, [this] {
      return stop_.load() || queue_.size() < options_.prefetch_batches + DeviceBuffers::kMinBuffers;
    });
    queue_.push_back(std::move(ready));
    SetDoing(Doing::kLoader);
  }
  ready_.notify_all();
}

// Only while the Loader has the next batch at hand may the last one stay unsettled: nobody waits
// for it longer than for its own work.
absl::StatusOr<DeviceLoader::Core::Taken> DeviceLoader::Core::TakeNext() {
  if (first_) return *std::exchange(first_, std::nullopt);
  if (!unsettled_) return TakeFromLoader();
  Taken taken{.batch = loader_.NextWithin(milliseconds(0)), .after = {}, .bad = {}};
  if (absl::IsDeadlineExceeded(taken.batch.status())) {
    RETURN_IF_ERROR(SettleLast());
    return TakeFromLoader();
  }
  taken.after = loader_.cursor();
  taken.bad = loader_.TakeBadSamples();
  return taken;
}

absl::Status DeviceLoader::Core::UploadOne(Taken taken) {
  DeviceBuffer* buffer = buffers_->TryTake();
  if (buffer == nullptr) {
    RETURN_IF_ERROR(SettleLast());  // for which the consumer may be waiting
    ASSIGN_OR_RETURN(buffer, WaitForBuffer());
  }
  auto batch = std::make_shared<HostBatch>(**std::move(taken.batch));
  const absl::Status enqueued = Enqueue(batch, *buffer, taken.bad);
  // The one before, which goes first whatever became of this one.
  RETURN_IF_ERROR(SettleLast());
  RETURN_IF_ERROR(enqueued);
  Ready ready{.buffer = buffer, .after = taken.after, .bad = std::move(taken.bad)};
  if (route_->has_to_settle()) {
    unsettled_ = Unsettled{std::move(ready), std::move(batch)};
  } else {
    Deliver(std::move(ready));
  }
  return absl::OkStatus();
}

absl::Status DeviceLoader::Core::SettleLast() {
  if (!unsettled_) return absl::OkStatus();
  Unsettled last = *std::exchange(unsettled_, std::nullopt);
  {
    const std::lock_guard lock(mutex_);
    SetDoing(Doing::kDecode);
  }
  const absl::Status settled = route_->Settle(*last.ready.buffer, last.ready.bad);
  {
    const std::lock_guard lock(mutex_);
    SetDoing(Doing::kLoader);
    route_->FillStats(stats_);
  }
  RETURN_IF_ERROR(settled);
  Deliver(std::move(last.ready));
  return absl::OkStatus();
}

// While it waits, copies end, and the Loader gets its memory back.
absl::StatusOr<DeviceBuffer*> DeviceLoader::Core::WaitForBuffer() {
  DeviceBuffer* buffer = buffers_->TryTake();
  if (buffer != nullptr) return buffer;
  const Clock::time_point start = Clock::now();
  {
    const std::lock_guard lock(mutex_);
    SetDoing(Doing::kBuffer);
  }
  absl::Status status;
  while (buffer == nullptr && status.ok()) {
    buffer = buffers_->Take(uploader_->in_flight() > 0 ? kMaxNap : microseconds(kLook));
    if (stop_.load()) status = Stopped();
    if (status.ok()) status = uploader_->Reclaim();
    if (status.ok() && device_.lost()) status = device_.LostStatus();
  }
  const std::lock_guard lock(mutex_);
  SetDoing(Doing::kLoader);
  stats_.buffer_wait_ns += NsSince(start);
  if (!status.ok()) return status;
  return buffer;
}

absl::Status DeviceLoader::Core::WaitForUploads() {
  absl::Status status = uploader_->Reclaim();
  if (!status.ok() || !uploader_->full()) return status;
  const Clock::time_point start = Clock::now();
  std::unique_lock lock(mutex_);
  SetDoing(Doing::kCopy);
  for (microseconds nap = kMinNap; status.ok() && uploader_->full();
       nap = std::min(nap * 2, kMaxNap)) {
    room_.wait_for(lock, nap);
    lock.unlock();
    status = stop_.load() ? Stopped() : uploader_->Reclaim();
    lock.lock();
  }
  SetDoing(Doing::kLoader);
  stats_.copy_wait_ns += NsSince(start);
  return status;
}

absl::Status DeviceLoader::Core::Enqueue(std::shared_ptr<HostBatch> shared, DeviceBuffer& buffer,
                                         std::vector<BadSample>& bad) {
  const HostBatch& batch = *shared;
  if (batch.size() != shape_->slots) {
    return absl::InternalError(
        absl::StrCat("a batch of ", batch.size(), " slots, not ", shape_->slots));
  }
  if (batch.pixels() == nullptr && shape_->host_pixel_bytes > 0) {
    return absl::InternalError("a batch without pixels, after one that had some");
  }
  FillInfo(batch, buffer.info);
  std::vector<UploadCopy> copies;
  if (shape_->has_raw) {
    RETURN_IF_ERROR(buffers_->ReserveRaw(buffer, BatchShape::RawBytes(batch)));
    CopySlabs(batch, shape_->decoded_field, buffer, copies);
  }
  const std::span<std::byte> staging = uploader_->staging();
  absl::Status made = Prepare(batch, buffer, bad);
  if (made.ok()) made = route_->Stage(batch, buffer, layout_->Payload(staging), copies, bad);
  if (!made.ok()) {
    uploader_->KeepUntilIdle(std::move(shared));  // work that is under way may still read it
    return made;
  }
  if (options_.labels) {
    copies.push_back(layout_->PutLabels(staging, buffer.info.labels, buffer.labels));
  }
  ASSIGN_OR_RETURN(const Event copied,
                   uploader_->Upload(std::move(shared), copies, buffers_->Dependencies(buffer)));
  ASSIGN_OR_RETURN(const Stream last, route_->Launch(buffer, copied));
  RETURN_IF_ERROR(device_.RecordEvent(buffer.ready, last));
  buffer.was_ready = true;
  buffer.was_released = false;
  const std::lock_guard lock(mutex_);
  stats_.uploads = uploader_->uploads();
  stats_.uploaded_bytes = uploader_->uploaded_bytes();
  return absl::OkStatus();
}

absl::Status DeviceLoader::Core::Prepare(const HostBatch& batch, DeviceBuffer& buffer,
                                         std::vector<BadSample>& bad) {
  {
    const std::lock_guard lock(mutex_);
    SetDoing(Doing::kDecode);
  }
  absl::Status prepared = route_->Prepare(batch, buffer, bad);
  const std::lock_guard lock(mutex_);
  SetDoing(Doing::kLoader);
  route_->FillStats(stats_);
  return prepared;
}

// Under mutex_.
void DeviceLoader::Core::SetDoing(Doing doing) {
  doing_ = doing;
  doing_since_ = Clock::now();
}

// Under mutex_.
absl::Status DeviceLoader::Core::WaitedTooLong() const {
  // It began a moment ago: something else took the time.
  if (Clock::now() - doing_since_ < options_.patience / 2) return absl::OkStatus();
  const std::string waited = absl::StrCat("no batch for ", options_.patience.count(), " ms: ");
  const std::string holders = buffers_->Holders();
  if (doing_ == Doing::kBuffer) {
    return absl::DeadlineExceededError(
        absl::StrCat(waited, "all ", buffers_->buffers(), " buffers are held, by the batches of ",
                     holders, "; release them, or raise prefetch_batches"));
  }
  if (doing_ == Doing::kDecode) {
    return absl::DeadlineExceededError(absl::StrCat(
        waited, "decoding a batch does not end; it waits for the stream that an earlier batch was",
        " released on, or for the device, or its images are huge",
        holders.empty() ? "" : absl::StrCat(" (held: ", holders, ")")));
  }
  if (doing_ == Doing::kCopy) {
    return absl::DeadlineExceededError(absl::StrCat(
        waited, "a copy to the device does not end; it waits for the stream that an earlier batch",
        " was released on, or for the device",
        holders.empty() ? "" : absl::StrCat(" (held: ", holders, ")")));
  }
  return absl::OkStatus();  // the Loader is slow, which is not an error
}

absl::Status DeviceLoader::Core::WaitForReady(std::unique_lock<std::mutex>& lock,
                                              const Interrupted& interrupted, AskAt ask_at) {
  const Clock::time_point start = Clock::now();
  Clock::time_point deadline = start + options_.patience;
  bool waited = false;
  while (queue_.empty() && failed_.ok() && !stop_.load() && !device_.lost() && shape_) {
    stats_.waits += waited ? 0 : 1;
    waited = true;
    ready_.wait_until(lock, std::min({deadline, Clock::now() + kLook, ask_at}));
    if (Clock::now() >= ask_at) ask_at = AskAt::max();  // asked now, and once
    if (interrupted != nullptr && queue_.empty()) {
      lock.unlock();
      const bool give_up = interrupted();
      lock.lock();
      if (give_up) {
        stats_.consumer_wait_ns += NsSince(start);
        return absl::CancelledError("waiting for a batch was interrupted");
      }
    }
    if (Clock::now() < deadline || !queue_.empty()) continue;
    RETURN_IF_ERROR(WaitedTooLong());
    deadline = Clock::now() + options_.patience;
  }
  stats_.consumer_wait_ns += NsSince(start);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<DeviceBatch>> DeviceLoader::Core::Next(const Interrupted& interrupted,
                                                                    AskAt ask_at) {
  if (!InOwnProcess()) {
    return absl::FailedPreconditionError(
        "the loader was opened in another process: neither its thread nor its device survive a "
        "fork; open it after");
  }
  std::unique_lock lock(mutex_);
  RETURN_IF_ERROR(WaitForReady(lock, interrupted, ask_at));
  if (stop_.load()) return Stopped();
  if (device_.lost()) {
    if (absl::IsUnavailable(failed_)) return failed_;
    return failed_ = device_.LostStatus();  // another user of the device was told first
  }
  if (!shape_) return std::nullopt;
  if (queue_.empty()) return failed_;
  Ready ready = std::move(queue_.front());
  queue_.pop_front();
  cursor_ = ready.after;
  bad_samples_.insert(bad_samples_.end(), ready.bad.begin(), ready.bad.end());
  if (ready.buffer != nullptr) ++stats_.batches;
  lock.unlock();
  room_.notify_all();
  if (ready.buffer == nullptr) return std::nullopt;
  buffers_->SetHeld(*ready.buffer);
  return DeviceBatch(buffers_, *ready.buffer,
                     shape_->pixel_bytes > 0
                         ? std::optional(shape_->PixelsOf(device_, *ready.buffer))
                         : std::nullopt,
                     options_.labels);
}

absl::StatusOr<std::optional<BatchInfo>> DeviceLoader::Core::NextInto(const DeviceTarget& target,
                                                                      Stream stream) {
  if (shape_ && shape_->pixel_bytes == 0) {
    return absl::InvalidArgumentError(
        "a batch of encoded bytes has no fixed size to be copied into a target");
  }
  if (shape_) RETURN_IF_ERROR(CheckTarget(target, shape_->pixel_bytes, shape_->slots));
  RETURN_IF_ERROR(CheckNotCapturing(device_, stream));
  ASSIGN_OR_RETURN(std::optional<DeviceBatch> batch, Next(nullptr, AskAt::max()));
  if (!batch.has_value()) return std::nullopt;
  absl::Status status = batch->WaitOn(stream);
  if (status.ok()) {
    status = device_.CopyWithin(target.pixels, batch->pixels()->data, target.pixel_bytes, stream);
  }
  if (status.ok() && target.labels != nullptr && options_.labels) {
    status =
        device_.CopyWithin(target.labels, batch->labels()->data, batch->labels()->bytes(), stream);
  }
  std::optional<BatchInfo> info = batch->info();
  status.Update(batch->Release(stream));
  RETURN_IF_ERROR(status);
  return info;
}

Cursor DeviceLoader::Core::cursor() const {
  const std::lock_guard lock(mutex_);
  return cursor_;
}

DeviceLoaderStats DeviceLoader::Core::stats() const {
  DeviceLoaderStats stats;
  {
    const std::lock_guard lock(mutex_);
    stats = stats_;
  }
  stats.host = loader_.stats();
  stats.ranks = ranks_;
  if (buffers_ != nullptr) {
    stats.buffers = buffers_->buffers();
    stats.device_bytes += buffers_->device_bytes();
    stats.shrinks = buffers_->shrinks();
    stats.growths += buffers_->growths();
  }
  return stats;
}

std::vector<BadSample> DeviceLoader::Core::TakeBadSamples() {
  const std::lock_guard lock(mutex_);
  return std::exchange(bad_samples_, {});
}

}  // namespace shardpack

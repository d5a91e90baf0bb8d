#include "cuda/loading/device_loader_core.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "formats/io/resources.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

// How often who waits looks whether the device was lost, or it is interrupted.
constexpr milliseconds kLook{50};
constexpr microseconds kMinNap{20}, kMaxNap{1000};

uint64_t NsSince(Clock::time_point start) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
}

absl::Status Stopped() { return absl::CancelledError("the loader was stopped"); }

}  // namespace

DeviceLoader::Core::Core(Loader loader, const DeviceOptions& options, const DeviceApi& api)
    : api_(api),
      options_(options),
      loader_(std::move(loader)),
      side_memory_(api, {.log = options.log}),
      cursor_(loader_.cursor()) {}

DeviceLoader::Core::~Core() {
  Stop();
  if (thread_.joinable()) thread_.join();
  uploader_.reset();
  if (has_work_stream_ && !IsLost(api_)) {
    if (WaitUntilIdle(api_, work_stream_, options_.stop_patience)) {
      (void)Checked(api_, api_.stream_destroy(api_.self, work_stream_), "");
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
  absl::Status status = Checked(api_, api_.enter_thread(api_.self), "entering a thread");
  if (status.ok() && options_.decode) status = MakeDecoder();
  while (status.ok()) {
    // While a copy runs, one more waits behind it; with more the Loader would lack memory to read
    // ahead, or allocate some.
    status = WaitForUploads();
    if (!status.ok()) break;
    Taken taken = first_ ? *std::exchange(first_, std::nullopt) : TakeFromLoader();
    status = taken.batch.status();
    if (status.ok() && !taken.batch->has_value()) {
      Deliver({.buffer = nullptr, .after = taken.after, .bad = std::move(taken.bad)});
    } else if (status.ok()) {
      status = UploadOne(std::move(taken));
    }
    if (status.ok() && stop_.load()) status = Stopped();
  }
  return status;
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

absl::Status DeviceLoader::Core::UploadOne(Taken taken) {
  ASSIGN_OR_RETURN(DeviceBuffer * buffer, WaitForBuffer());
  RETURN_IF_ERROR(Enqueue(**std::move(taken.batch), *buffer, taken.bad));
  Deliver({.buffer = buffer, .after = taken.after, .bad = std::move(taken.bad)});
  return absl::OkStatus();
}

// While it waits, copies become done, and the Loader gets its memory back.
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
    if (status.ok() && IsLost(api_)) status = LostStatus(api_);
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

void DeviceLoader::Core::PlanCopies(const HostBatch& batch, DeviceBuffer& buffer,
                                    std::vector<UploadCopy>& copies) {
  if (decoded_ && !on_host_ && decoder_ == nullptr) {
    copies.push_back({batch.pixels()->bytes.data(), buffer.pixels, batch.pixels()->bytes.size()});
  }
  if (!raw_) return;
  // The slabs keep their order; each sample is found in one of them.
  size_t at = 0;
  std::vector<size_t> places;
  for (const Bytes slab : batch.slabs()) {
    places.push_back(at);
    copies.push_back({slab.data(), buffer.raw + at, slab.size()});
    at += DeviceAligned(slab.size());
  }
  buffer.fields.assign(batch.fields() * batch.size(), {});
  for (size_t field = 0; field < batch.fields(); ++field) {
    const bool decoded = decoder_ != nullptr && field == image_field_;
    for (size_t slot = 0; slot < batch.size(); ++slot) {
      if (decoded || !batch.has(field, slot)) continue;
      const Bytes bytes = batch.bytes(field, slot);
      for (size_t i = 0; i < places.size(); ++i) {
        const Bytes slab = batch.slabs()[i];
        if (bytes.data() < slab.data() || bytes.data() >= slab.data() + slab.size()) continue;
        const auto offset = static_cast<size_t>(bytes.data() - slab.data());
        buffer.fields[field * batch.size() + slot] = {buffer.raw + places[i] + offset,
                                                      bytes.size()};
        break;
      }
    }
  }
}

// Images one behind the other; padding has none, and becomes zeros.
std::vector<PreprocessSample>& DeviceLoader::Core::SamplesAt(const uint8_t* pixels,
                                                             const BatchInfo* info) {
  const size_t image_bytes = size_t{width_} * height_ * channels_;
  for (size_t i = 0; i < host_samples_.size(); ++i) {
    const bool padding = info != nullptr && info->ids[i] == kPaddingId;
    host_samples_[i].pixels = padding ? nullptr : pixels + i * image_bytes;
  }
  return host_samples_;
}

// The parameters on the device are right but for padding, which the last batch of an epoch may
// have; of images that were decoded for it each batch has its own.
void DeviceLoader::Core::PutSamples(DeviceBuffer& buffer, std::byte* side,
                                    std::vector<UploadCopy>& copies) {
  const size_t bytes = slots_ * sizeof(PreprocessSample);
  if (decoder_ != nullptr) {
    std::memcpy(side, host_samples_.data(), bytes);
    copies.push_back({side, buffer.samples, bytes});
    return;
  }
  const bool odd = std::find(buffer.info.ids.begin(), buffer.info.ids.end(), kPaddingId) !=
                   buffer.info.ids.end();
  if (!odd && !buffer.odd_samples) return;
  std::memcpy(side, SamplesAt(buffer.pixels, &buffer.info).data(), bytes);
  copies.push_back({side, buffer.samples, bytes});
  buffer.odd_samples = odd;
}

absl::Status DeviceLoader::Core::PreprocessToSide(std::byte* to) {
  PreprocessLaunch launch = LaunchOf(*buffers_->all().front());
  launch.samples = host_samples_.data();
  launch.out = to;
  return PreprocessByThreads(launch, AvailableCores());
}

absl::Status DeviceLoader::Core::Enqueue(HostBatch batch, DeviceBuffer& buffer,
                                         std::vector<BadSample>& bad) {
  if (batch.size() != slots_) {
    return absl::InternalError(absl::StrCat("a batch of ", batch.size(), " slots, not ", slots_));
  }
  BatchInfo& info = buffer.info;
  info.epoch = batch.epoch();
  info.step = batch.step();
  info.ids.assign(batch.ids().begin(), batch.ids().end());
  info.labels.assign(batch.labels().begin(), batch.labels().end());
  info.status.assign(batch.status().begin(), batch.status().end());
  if (raw_) {
    size_t bytes = 0;
    for (const Bytes slab : batch.slabs()) bytes += DeviceAligned(slab.size());
    RETURN_IF_ERROR(buffers_->ReserveRaw(buffer, bytes));
  }
  std::vector<UploadCopy> copies;
  PlanCopies(batch, buffer, copies);
  Event copied = nullptr;
  if (decoder_ != nullptr) {
    absl::Status decoded = DecodeImages(batch, buffer, bad);
    if (!decoded.ok()) {
      // What is under way may still read the batch.
      (void)uploader_->Upload(std::move(batch), {}, {}, &copied);
      return decoded;
    }
  }
  const std::span<std::byte> side = uploader_->side();
  if (options_.labels) {
    std::memcpy(side.data(), info.labels.data(), slots_ * sizeof(int64_t));
    copies.push_back({side.data(), buffer.labels, slots_ * sizeof(int64_t)});
  }
  std::byte* const rest = side.data() + DeviceAligned(slots_ * sizeof(int64_t));
  if (preprocess_) PutSamples(buffer, rest, copies);
  if (on_host_) {
    if (decoder_ == nullptr) {
      SamplesAt(reinterpret_cast<const uint8_t*>(batch.pixels()->bytes.data()), &info);
    }
    RETURN_IF_ERROR(PreprocessToSide(rest));
    copies.push_back({rest, buffer.pixels, pixel_bytes()});
  }
  absl::Status status =
      uploader_->Upload(std::move(batch), copies, buffers_->Before(buffer), &copied);
  if (!status.ok()) return status;
  Stream last = uploader_->stream();
  if (preprocess_) {
    if (decoder_ == nullptr) {
      last = work_stream_;
      status = Checked(api_, api_.stream_wait(api_.self, last, copied),
                       "making the preprocessing wait for a copy");
    }
    if (status.ok()) {
      status = Checked(api_, api_.preprocess(api_.self, LaunchOf(buffer), last),
                       "starting the preprocessing");
    }
    if (!status.ok()) return status;
  }
  if (decoder_ != nullptr) status = decoder_->Done(DecodeStream());
  if (!status.ok()) return status;
  status = Checked(api_, api_.event_record(api_.self, buffer.ready, last),
                   "recording that a batch is ready");
  if (!status.ok()) return status;
  buffer.was_ready = true;
  buffer.was_released = false;
  const std::lock_guard lock(mutex_);
  stats_.uploads = uploader_->uploads();
  stats_.uploaded_bytes = uploader_->uploaded_bytes();
  return absl::OkStatus();
}

// Under mutex_.
void DeviceLoader::Core::SetDoing(Doing doing) {
  doing_ = doing;
  doing_since_ = Clock::now();
}

// Under mutex_.
absl::Status DeviceLoader::Core::WaitedTooLong() const {
  // It began a moment ago: what took the time was something else.
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
  return absl::OkStatus();  // the Loader is slow, which is no error
}

absl::StatusOr<std::optional<DeviceBatch>> DeviceLoader::Core::Next(
    const Interrupted& interrupted) {
  if (!InOwnProcess()) {
    return absl::FailedPreconditionError(
        "the loader was opened in another process: neither its thread nor its device survive a "
        "fork; open it after");
  }
  const Clock::time_point start = Clock::now();
  std::unique_lock lock(mutex_);
  Clock::time_point deadline = start + options_.patience;
  bool waited = false;
  while (queue_.empty() && failed_.ok() && !stop_.load() && !IsLost(api_) && !exhausted_) {
    stats_.waits += waited ? 0 : 1;
    waited = true;
    ready_.wait_until(lock, std::min(deadline, Clock::now() + kLook));
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
  if (stop_.load()) return Stopped();
  if (IsLost(api_)) {
    if (absl::IsUnavailable(failed_)) return failed_;
    return failed_ = LostStatus(api_);  // another user of the device was told first
  }
  if (queue_.empty() && exhausted_) return std::nullopt;
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
                     decoded_ ? std::optional(PixelsOf(*ready.buffer)) : std::nullopt,
                     options_.labels);
}

absl::StatusOr<std::optional<BatchInfo>> DeviceLoader::Core::NextInto(const DeviceTarget& target,
                                                                      Stream stream) {
  if (!exhausted_ && (!decoded_ || target.pixel_bytes != pixel_bytes())) {
    return absl::InvalidArgumentError(
        decoded_
            ? absl::StrCat("the target has ", target.pixel_bytes, " bytes, a batch ", pixel_bytes())
            : "a batch of encoded bytes has no fixed size to be copied into a target");
  }
  ASSIGN_OR_RETURN(std::optional<DeviceBatch> batch, Next(nullptr));
  if (!batch.has_value()) return std::nullopt;
  absl::Status status = batch->WaitOn(stream);
  if (status.ok()) {
    status = Checked(api_,
                     api_.copy_within(api_.self, target.pixels, batch->pixels()->data,
                                      target.pixel_bytes, stream),
                     "copying a batch into its target");
  }
  if (status.ok() && target.labels != nullptr && options_.labels) {
    status = Checked(api_,
                     api_.copy_within(api_.self, target.labels, batch->labels()->data,
                                      slots_ * sizeof(int64_t), stream),
                     "copying labels into their target");
  }
  std::optional<BatchInfo> info = batch->info();
  absl::Status released = batch->Release(stream);
  if (!status.ok()) return status;
  if (!released.ok()) return released;
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

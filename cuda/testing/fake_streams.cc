// Streams, events and what runs on them.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cuda/testing/fake_internal.h"
#include "formats/io/status_macros.h"

namespace shardpack {
void FakeDevice::RunStream(FakeStream& stream) {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] {
      if (lost_code_.load() != 0) stream.queue.clear();
      if (stream.queue.empty()) return stream.ends;
      const auto& may_run = stream.queue.front().may_run;
      return !held_ && (may_run == nullptr || may_run());
    });
    if (stream.queue.empty()) return;
    FakeStream::Operation operation = std::move(stream.queue.front());
    stream.queue.pop_front();
    stream.busy = true;
    lock.unlock();
    if (options_.max_delay_us > 0) {
      std::this_thread::sleep_for(
          std::chrono::microseconds(stream.random() % (options_.max_delay_us + 1)));
    }
    if (operation.run != nullptr && lost_code_.load() == 0) operation.run();
    lock.lock();
    stream.busy = false;
    if (operation.after != nullptr && lost_code_.load() == 0) operation.after();
    changed_.notify_all();
  }
}

// Lost, and what ran then has ended: memory that it used may be freed.
bool FakeDevice::Stopped() const {
  const auto runs = [](const auto& stream) { return stream.second->busy; };
  return lost_code_.load() != 0 && std::none_of(streams_.begin(), streams_.end(), runs);
}

std::shared_ptr<FakeDevice::FakeStream> FakeDevice::FindStream(Stream stream) {
  if (stream == nullptr && streams_.count(nullptr) == 0) {
    auto made = std::make_shared<FakeStream>();
    made->random.seed(random_());
    made->thread = std::thread([this, raw = made.get()] { RunStream(*raw); });
    streams_[nullptr] = made;
  }
  const auto found = streams_.find(stream);
  if (found != streams_.end()) return found->second;
  misuses_.push_back("a stream that is not there");
  return nullptr;
}

std::shared_ptr<FakeDevice::FakeEvent> FakeDevice::FindEvent(Event event) {
  const auto found = events_.find(event);
  if (found != events_.end()) return found->second;
  misuses_.push_back("an event that is not there");
  return nullptr;
}

absl::StatusOr<Stream> FakeDevice::CreateStream() {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(Begin("CreateStream", Kind::kMakes));
  auto made = std::make_shared<FakeStream>();
  made->random.seed(random_());
  const auto stream = reinterpret_cast<Stream>(made.get());
  made->thread = std::thread([this, raw = made.get()] { RunStream(*raw); });
  streams_[stream] = std::move(made);
  return stream;
}

// What is enqueued still runs.
absl::Status FakeDevice::DestroyStream(Stream stream) {
  const std::lock_guard lock(mutex_);
  absl::Status error = Begin("DestroyStream", Kind::kFrees);
  if (lost_code_.load() != 0) return error;
  const std::shared_ptr<FakeStream> found = stream == nullptr ? nullptr : FindStream(stream);
  if (found == nullptr) return Error(kDeviceInvalidHandle, "DestroyStream");
  found->ends = true;
  ended_.push_back(found);
  streams_.erase(stream);
  changed_.notify_all();
  return error;
}

void FakeDevice::JoinDestroyed() {
  std::unique_lock lock(mutex_);
  const auto ended = std::exchange(ended_, {});
  lock.unlock();
  for (const auto& stream : ended) stream->thread.join();
}

absl::StatusOr<bool> FakeDevice::IsIdle(Stream stream) {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(Begin("IsIdle", Kind::kPlain));
  const std::shared_ptr<FakeStream> found = FindStream(stream);
  if (found == nullptr) return Error(kDeviceInvalidHandle, "IsIdle");
  return found->idle();
}

absl::Status FakeDevice::Synchronize(Stream stream) {
  std::unique_lock lock(mutex_);
  RETURN_IF_ERROR(Begin("Synchronize", Kind::kWaits));
  const std::shared_ptr<FakeStream> found = FindStream(stream);
  if (found == nullptr) return Error(kDeviceInvalidHandle, "Synchronize");
  changed_.wait(lock, [&] { return Stopped() || found->idle(); });
  return lost_code_.load() == 0 ? absl::OkStatus() : Error(lost_code_.load(), "Synchronize");
}

absl::Status FakeDevice::StreamWait(Stream stream, Event event) {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(Begin("StreamWait", Kind::kPlain));
  const std::shared_ptr<FakeStream> found = FindStream(stream);
  const std::shared_ptr<FakeEvent> awaited = FindEvent(event);
  if (found == nullptr || awaited == nullptr) return Error(kDeviceInvalidHandle, "StreamWait");
  found->queue.push_back(
      {nullptr, [awaited, generation = awaited->recorded] { return awaited->done >= generation; },
       nullptr});
  changed_.notify_all();
  return absl::OkStatus();
}

absl::StatusOr<Event> FakeDevice::CreateEvent() {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(Begin("CreateEvent", Kind::kMakes));
  auto made = std::make_shared<FakeEvent>();
  const auto event = reinterpret_cast<Event>(made.get());
  events_[event] = std::move(made);
  return event;
}

absl::Status FakeDevice::DestroyEvent(Event event) {
  const std::lock_guard lock(mutex_);
  absl::Status error = Begin("DestroyEvent", Kind::kFrees);
  if (lost_code_.load() != 0) return error;
  if (FindEvent(event) == nullptr) return Error(kDeviceInvalidHandle, "DestroyEvent");
  events_.erase(event);
  return error;
}

absl::Status FakeDevice::RecordEvent(Event event, Stream stream) {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(Begin("RecordEvent", Kind::kPlain));
  const std::shared_ptr<FakeStream> found = FindStream(stream);
  const std::shared_ptr<FakeEvent> recorded = FindEvent(event);
  if (found == nullptr || recorded == nullptr) return Error(kDeviceInvalidHandle, "RecordEvent");
  const uint64_t generation = ++recorded->recorded;
  found->queue.push_back({nullptr, nullptr, [recorded, generation] {
                            recorded->done = std::max(recorded->done, generation);
                          }});
  changed_.notify_all();
  return absl::OkStatus();
}

absl::StatusOr<bool> FakeDevice::IsDone(Event event) {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(Begin("IsDone", Kind::kPlain));
  const std::shared_ptr<FakeEvent> found = FindEvent(event);
  if (found == nullptr) return Error(kDeviceInvalidHandle, "IsDone");
  return found->done >= found->recorded;
}

absl::Status FakeDevice::Copy(std::string_view entry, void* to, const void* from, size_t bytes,
                              Stream stream) {
  std::unique_lock lock(mutex_);
  RETURN_IF_ERROR(Begin(entry, Kind::kPlain));
  const bool from_device = entry != "CopyToDevice", to_device = entry != "CopyToHost";
  if ((to_device && !InBlock(to, bytes)) || (from_device && !InBlock(from, bytes))) {
    return Misuse(absl::StrCat(std::string(entry), " outside device memory"), kDeviceInvalidValue);
  }
  const std::shared_ptr<FakeStream> found = FindStream(stream);
  if (found == nullptr) return Error(kDeviceInvalidHandle, entry);
  if (!from_device) copied_bytes_ += bytes;
  found->queue.push_back({[to, from, bytes] { std::memcpy(to, from, bytes); }, nullptr, nullptr});
  changed_.notify_all();
  const void* const host = from_device ? to : from;
  if ((from_device && to_device) || InPageLock(host, bytes)) return absl::OkStatus();
  // Memory that is not page-locked goes through the driver's own: the caller waits.
  ++host_syncs_;
  changed_.wait(lock, [&] { return Stopped() || found->idle(); });
  return lost_code_.load() == 0 ? absl::OkStatus() : Error(lost_code_.load(), entry);
}

absl::Status FakeDevice::Fill(void* to, int byte, size_t bytes, Stream stream) {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(Begin("Fill", Kind::kPlain));
  if (!InBlock(to, bytes)) return Misuse("Fill outside device memory", kDeviceInvalidValue);
  const std::shared_ptr<FakeStream> found = FindStream(stream);
  if (found == nullptr) return Error(kDeviceInvalidHandle, "Fill");
  found->queue.push_back({[to, byte, bytes] { std::memset(to, byte, bytes); }, nullptr, nullptr});
  changed_.notify_all();
  return absl::OkStatus();
}

absl::Status FakeDevice::Preprocess(const PreprocessLaunch& launch, Stream stream) {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(Begin("Preprocess", Kind::kPlain));
  const size_t out_bytes = launch.output.Bytes(launch.out_width, launch.out_height) * launch.count;
  if (!InBlock(launch.samples, launch.count * sizeof(PreprocessSample)) ||
      !InBlock(launch.out, out_bytes)) {
    return Misuse("Preprocess outside device memory", kDeviceInvalidValue);
  }
  const std::shared_ptr<FakeStream> found = FindStream(stream);
  if (found == nullptr) return Error(kDeviceInvalidHandle, "Preprocess");
  found->queue.push_back({[this, launch] {
                            const absl::Status done = PreprocessOnHost(launch);
                            if (done.ok()) return;
                            const std::lock_guard inner(mutex_);
                            misuses_.push_back(std::string(done.message()));
                          },
                          nullptr, nullptr});
  changed_.notify_all();
  return absl::OkStatus();
}

void FakeDevice::Enqueue(Stream stream, std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<FakeStream> found = FindStream(stream);
  if (found == nullptr) return;
  found->queue.push_back({std::move(work), nullptr, nullptr});
  changed_.notify_all();
}

absl::Status FakeDevice::Gather(const GatherLaunch& launch, Stream stream) {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(Begin("Gather", Kind::kPlain));
  if (!InBlock(launch.rows, launch.count * sizeof(uint64_t)) ||
      !InBlock(launch.out, launch.count * launch.row_bytes) || !InBlock(launch.table, 1)) {
    return Misuse("Gather outside device memory", kDeviceInvalidValue);
  }
  const std::shared_ptr<FakeStream> found = FindStream(stream);
  if (found == nullptr) return Error(kDeviceInvalidHandle, "Gather");
  found->queue.push_back({[launch] { GatherOnHost(launch); }, nullptr, nullptr});
  changed_.notify_all();
  return absl::OkStatus();
}

}  // namespace shardpack

// Streams, events and what runs on them.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cuda/testing/fake_internal.h"

namespace shardpack {
namespace {

FakeApi& Of(void* self) { return *static_cast<FakeApi*>(self); }

}  // namespace

void FakeApi::RunStream(FakeStream& stream) {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] {
      if (lost_.load() != 0) stream.queue.clear();
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
    if (operation.run != nullptr && lost_.load() == 0) operation.run();
    lock.lock();
    stream.busy = false;
    if (operation.after != nullptr && lost_.load() == 0) operation.after();
    changed_.notify_all();
  }
}

// Lost, and what ran then has ended: memory that it used may be freed.
bool FakeApi::Stopped() const {
  const auto runs = [](const auto& stream) { return stream.second->busy; };
  return lost_.load() != 0 && std::none_of(streams_.begin(), streams_.end(), runs);
}

std::shared_ptr<FakeApi::FakeStream> FakeApi::FindStream(Stream stream) {
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

std::shared_ptr<FakeApi::FakeEvent> FakeApi::FindEvent(Event event) {
  const auto found = events_.find(event);
  if (found != events_.end()) return found->second;
  misuses_.push_back("an event that is not there");
  return nullptr;
}

DeviceStatus FakeApi::StreamCreate(Stream* stream) {
  const std::lock_guard lock(mutex_);
  if (const auto error = Begin("stream_create", Kind::kMakes)) return *error;
  auto made = std::make_shared<FakeStream>();
  made->random.seed(random_());
  *stream = reinterpret_cast<Stream>(made.get());
  made->thread = std::thread([this, raw = made.get()] { RunStream(*raw); });
  streams_[*stream] = std::move(made);
  return {};
}

// What is enqueued still runs.
DeviceStatus FakeApi::StreamDestroy(Stream stream) {
  const std::lock_guard lock(mutex_);
  const auto error = Begin("stream_destroy", Kind::kFrees);
  if (error && lost_.load() != 0) return *error;
  const std::shared_ptr<FakeStream> found = stream == nullptr ? nullptr : FindStream(stream);
  if (found == nullptr) return FakeError(kDeviceInvalidHandle);
  found->ends = true;
  ended_.push_back(found);
  streams_.erase(stream);
  changed_.notify_all();
  return error.value_or(DeviceStatus());
}

void FakeApi::JoinDestroyed() {
  std::unique_lock lock(mutex_);
  const auto ended = std::exchange(ended_, {});
  lock.unlock();
  for (const auto& stream : ended) stream->thread.join();
}

DeviceStatus FakeApi::StreamIdle(Stream stream, bool wait) {
  std::unique_lock lock(mutex_);
  const auto error =
      wait ? Begin("stream_synchronize", Kind::kWaits) : Begin("stream_query", Kind::kPlain);
  if (error) return *error;
  const std::shared_ptr<FakeStream> found = FindStream(stream);
  if (found == nullptr) return FakeError(kDeviceInvalidHandle);
  if (wait) changed_.wait(lock, [&] { return Stopped() || found->idle(); });
  if (lost_.load() != 0) return FakeError(lost_.load());
  return found->idle() ? DeviceStatus() : FakeError(kDeviceNotReady);
}

DeviceStatus FakeApi::StreamWait(Stream stream, Event event) {
  const std::lock_guard lock(mutex_);
  if (const auto error = Begin("stream_wait", Kind::kPlain)) return *error;
  const std::shared_ptr<FakeStream> found = FindStream(stream);
  const std::shared_ptr<FakeEvent> awaited = FindEvent(event);
  if (found == nullptr || awaited == nullptr) return FakeError(kDeviceInvalidHandle);
  found->queue.push_back(
      {nullptr, [awaited, generation = awaited->recorded] { return awaited->done >= generation; },
       nullptr});
  changed_.notify_all();
  return {};
}

DeviceStatus FakeApi::EventCreate(Event* event) {
  const std::lock_guard lock(mutex_);
  if (const auto error = Begin("event_create", Kind::kMakes)) return *error;
  auto made = std::make_shared<FakeEvent>();
  *event = reinterpret_cast<Event>(made.get());
  events_[*event] = std::move(made);
  return {};
}

DeviceStatus FakeApi::EventDestroy(Event event) {
  const std::lock_guard lock(mutex_);
  const auto error = Begin("event_destroy", Kind::kFrees);
  if (error && lost_.load() != 0) return *error;
  if (FindEvent(event) == nullptr) return FakeError(kDeviceInvalidHandle);
  events_.erase(event);
  return error.value_or(DeviceStatus());
}

DeviceStatus FakeApi::EventRecord(Event event, Stream stream) {
  const std::lock_guard lock(mutex_);
  if (const auto error = Begin("event_record", Kind::kPlain)) return *error;
  const std::shared_ptr<FakeStream> found = FindStream(stream);
  const std::shared_ptr<FakeEvent> recorded = FindEvent(event);
  if (found == nullptr || recorded == nullptr) return FakeError(kDeviceInvalidHandle);
  const uint64_t generation = ++recorded->recorded;
  found->queue.push_back({nullptr, nullptr, [recorded, generation] {
                            recorded->done = std::max(recorded->done, generation);
                            recorded->when = std::chrono::steady_clock::now();
                          }});
  changed_.notify_all();
  return {};
}

DeviceStatus FakeApi::EventDone(Event event, bool wait) {
  std::unique_lock lock(mutex_);
  const auto error =
      wait ? Begin("event_synchronize", Kind::kWaits) : Begin("event_query", Kind::kPlain);
  if (error) return *error;
  const std::shared_ptr<FakeEvent> found = FindEvent(event);
  if (found == nullptr) return FakeError(kDeviceInvalidHandle);
  const uint64_t generation = found->recorded;
  const auto done = [&] { return found->done >= generation; };
  if (wait) changed_.wait(lock, [&] { return Stopped() || done(); });
  if (lost_.load() != 0) return FakeError(lost_.load());
  return done() ? DeviceStatus() : FakeError(kDeviceNotReady);
}

DeviceStatus FakeApi::Elapsed(float* ms, Event from, Event to) {
  const std::lock_guard lock(mutex_);
  if (const auto error = Begin("event_elapsed_ms", Kind::kPlain)) return *error;
  const std::shared_ptr<FakeEvent> first = FindEvent(from), last = FindEvent(to);
  if (first == nullptr || last == nullptr) return FakeError(kDeviceInvalidHandle);
  *ms = std::chrono::duration<float, std::milli>(last->when - first->when).count();
  return {};
}

DeviceStatus FakeApi::Copy(std::string_view entry, void* to, const void* from, size_t bytes,
                           Stream stream) {
  std::unique_lock lock(mutex_);
  if (const auto error = Begin(entry, Kind::kPlain)) return *error;
  const bool from_device = entry != "copy_to_device", to_device = entry != "copy_to_host";
  if ((to_device && !InBlock(to, bytes)) || (from_device && !InBlock(from, bytes))) {
    return Misuse(absl::StrCat(std::string(entry), " outside device memory"), kDeviceInvalidValue);
  }
  const std::shared_ptr<FakeStream> found = FindStream(stream);
  if (found == nullptr) return FakeError(kDeviceInvalidHandle);
  if (entry == "copy_to_device") copied_bytes_ += bytes;
  found->queue.push_back({[to, from, bytes] { std::memcpy(to, from, bytes); }, nullptr, nullptr});
  changed_.notify_all();
  const void* const host = from_device ? to : from;
  if ((from_device && to_device) || IsPinned(host, bytes)) return {};
  // Memory that is not page-locked goes through the driver's own: the caller waits.
  ++host_syncs_;
  changed_.wait(lock, [&] { return Stopped() || found->idle(); });
  return FakeError(lost_.load());
}

DeviceStatus FakeApi::Fill(void* to, int byte, size_t bytes, Stream stream) {
  const std::lock_guard lock(mutex_);
  if (const auto error = Begin("fill", Kind::kPlain)) return *error;
  if (!InBlock(to, bytes)) return Misuse("fill outside device memory", kDeviceInvalidValue);
  const std::shared_ptr<FakeStream> found = FindStream(stream);
  if (found == nullptr) return FakeError(kDeviceInvalidHandle);
  found->queue.push_back({[to, byte, bytes] { std::memset(to, byte, bytes); }, nullptr, nullptr});
  changed_.notify_all();
  return {};
}

DeviceStatus FakeApi::Preprocess(const PreprocessLaunch& launch, Stream stream) {
  const std::lock_guard lock(mutex_);
  if (const auto error = Begin("preprocess", Kind::kPlain)) return *error;
  const size_t out_bytes = launch.output.Bytes(launch.out_width, launch.out_height) * launch.count;
  if (!InBlock(launch.samples, launch.count * sizeof(PreprocessSample)) ||
      !InBlock(launch.out, out_bytes)) {
    return Misuse("preprocess outside device memory", kDeviceInvalidValue);
  }
  const std::shared_ptr<FakeStream> found = FindStream(stream);
  if (found == nullptr) return FakeError(kDeviceInvalidHandle);
  found->queue.push_back({[this, launch] {
                            const absl::Status done = PreprocessOnHost(launch);
                            if (done.ok()) return;
                            const std::lock_guard inner(mutex_);
                            misuses_.push_back(std::string(done.message()));
                          },
                          nullptr, nullptr});
  changed_.notify_all();
  return {};
}

void FakeApi::Enqueue(Stream stream, std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<FakeStream> found = FindStream(stream);
  if (found == nullptr) return;
  found->queue.push_back({std::move(work), nullptr, nullptr});
  changed_.notify_all();
}

DeviceStatus FakeApi::Gather(const GatherLaunch& launch, Stream stream) {
  const std::lock_guard lock(mutex_);
  if (const auto error = Begin("gather", Kind::kPlain)) return *error;
  if (!InBlock(launch.rows, launch.count * sizeof(uint64_t)) ||
      !InBlock(launch.out, launch.count * launch.row_bytes) || !InBlock(launch.table, 1)) {
    return Misuse("gather outside device memory", kDeviceInvalidValue);
  }
  const std::shared_ptr<FakeStream> found = FindStream(stream);
  if (found == nullptr) return FakeError(kDeviceInvalidHandle);
  found->queue.push_back({[launch] { GatherOnHost(launch); }, nullptr, nullptr});
  changed_.notify_all();
  return {};
}

void FakeApi::FillStreamEntries() {
  api_.stream_create = [](void* self, Stream* stream) { return Of(self).StreamCreate(stream); };
  api_.stream_destroy = [](void* self, Stream stream) { return Of(self).StreamDestroy(stream); };
  api_.stream_query = [](void* self, Stream stream) { return Of(self).StreamIdle(stream, false); };
  api_.stream_synchronize = [](void* self, Stream stream) {
    return Of(self).StreamIdle(stream, true);
  };
  api_.stream_wait = [](void* self, Stream stream, Event event) {
    return Of(self).StreamWait(stream, event);
  };
  api_.event_create = [](void* self, Event* event, bool) { return Of(self).EventCreate(event); };
  api_.event_destroy = [](void* self, Event event) { return Of(self).EventDestroy(event); };
  api_.event_record = [](void* self, Event event, Stream stream) {
    return Of(self).EventRecord(event, stream);
  };
  api_.event_query = [](void* self, Event event) { return Of(self).EventDone(event, false); };
  api_.event_synchronize = [](void* self, Event event) { return Of(self).EventDone(event, true); };
  api_.event_elapsed_ms = [](void* self, float* ms, Event from, Event to) {
    return Of(self).Elapsed(ms, from, to);
  };
  api_.preprocess = [](void* self, const PreprocessLaunch& launch, Stream stream) {
    return Of(self).Preprocess(launch, stream);
  };
  api_.gather = [](void* self, const GatherLaunch& launch, Stream stream) {
    return Of(self).Gather(launch, stream);
  };
}

}  // namespace shardpack

// Streams, events and what runs on them.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cuda/testing/fake_internal.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

// Unlike its id it is not given to another thread after the end of this one.
uint64_t ThisThread() {
  static std::atomic<uint64_t> threads{0};
  thread_local const uint64_t number = ++threads;
  return number;
}

}  // namespace

void FakeDevice::RunStream(FakeStream& stream) {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] {
      if (lost_code_.load() != 0) {
        stream.finished += stream.queue.size();
        stream.queue.clear();
      }
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
    if (operation.run != nullptr && fail_operation_ && fail_operation_->first-- == 0) {
      lost_code_.store(std::exchange(fail_operation_, std::nullopt)->second);
    }
    stream.busy = false;
    ++stream.finished;
    if (operation.after != nullptr && lost_code_.load() == 0) operation.after();
    changed_.notify_all();
  }
}

// Lost, and what ran then has ended: memory that it used may be freed.
bool FakeDevice::Stopped() const {
  const auto runs = [](const auto& stream) { return stream.second->busy; };
  return lost_code_.load() != 0 && std::none_of(streams_.begin(), streams_.end(), runs);
}

std::shared_ptr<FakeDevice::FakeStream> FakeDevice::StartStream(StreamPriority priority) {
  auto made = std::make_shared<FakeStream>();
  made->priority = priority;
  made->random.seed(random_());
  made->thread = std::thread([this, raw = made.get()] { RunStream(*raw); });
  streams_[reinterpret_cast<Stream>(made.get())] = made;
  return made;
}

std::shared_ptr<FakeDevice::FakeStream> FakeDevice::DefaultStream(std::map<uint64_t, Stream>& known,
                                                                  uint64_t thread) {
  const auto found = known.find(thread);
  if (found != known.end()) return streams_.at(found->second);
  std::shared_ptr<FakeStream> made = StartStream(StreamPriority::kNormal);
  known[thread] = reinterpret_cast<Stream>(made.get());
  return made;
}

// A null stream is the legacy one.
std::shared_ptr<FakeDevice::FakeStream> FakeDevice::FindStream(Stream stream) {
  if (stream == nullptr || stream == LegacyStream()) return DefaultStream(legacy_stream_, 0);
  if (stream == ThreadStream()) return DefaultStream(thread_streams_, ThisThread());
  const auto found = streams_.find(stream);
  if (found != streams_.end()) return found->second;
  misuses_.push_back("a stream that is not there");
  return nullptr;
}

bool FakeDevice::IsDefault(const FakeStream& stream) const {
  const auto is = [&](const auto& known) {
    return reinterpret_cast<const FakeStream*>(known.second) == &stream;
  };
  return std::any_of(legacy_stream_.begin(), legacy_stream_.end(), is) ||
         std::any_of(thread_streams_.begin(), thread_streams_.end(), is);
}

void FakeDevice::Push(FakeStream& stream, std::function<void()> run, std::function<bool()> may_run,
                      std::function<void()> after) {
  if (stream.capturing) {
    if (run != nullptr) stream.captured.push_back(std::move(run));
    return;
  }
  // What the legacy stream and those of threads wait for: all earlier work of the other kind.
  std::vector<std::pair<std::shared_ptr<FakeStream>, uint64_t>> before;
  if (IsDefault(stream)) {
    const auto is_legacy = [this](const FakeStream* one) {
      return !legacy_stream_.empty() &&
             reinterpret_cast<const FakeStream*>(legacy_stream_.begin()->second) == one;
    };
    const auto& others = is_legacy(&stream) ? thread_streams_ : legacy_stream_;
    for (const auto& [thread, handle] : others) {
      const std::shared_ptr<FakeStream>& other = streams_.at(handle);
      if (other->pushed > other->finished) before.emplace_back(other, other->pushed);
    }
  }
  auto may = [may_run = std::move(may_run), before = std::move(before)] {
    for (const auto& [other, count] : before) {
      if (other->finished < count) return false;
    }
    return may_run == nullptr || may_run();
  };
  ++stream.pushed;
  stream.queue.push_back({std::move(run), std::move(may), std::move(after)});
  changed_.notify_all();
}

void FakeDevice::PushKernel(FakeStream& stream, std::function<void()> run) {
  launches_ += stream.capturing ? 0 : 1;
  urgent_launches_ += stream.priority == StreamPriority::kHigh ? 1 : 0;
  Push(stream, std::move(run));
}

void FakeDevice::BeginCapture(Stream stream) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<FakeStream> found = FindStream(stream);
  found->capturing = true;
  found->captured_wrongly = false;
  found->captured.clear();
}

bool FakeDevice::EndCapture(Stream stream, Graph* graph) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<FakeStream> found = FindStream(stream);
  found->capturing = false;
  if (graph != nullptr) *graph = std::move(found->captured);
  return !found->captured_wrongly;
}

void FakeDevice::LaunchGraph(const Graph& graph, Stream stream) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<FakeStream> found = FindStream(stream);
  for (const auto& work : graph) Push(*found, work);
}

absl::StatusOr<bool> FakeDevice::IsCapturing(Stream stream) {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(Begin("IsCapturing", Kind::kPlain));
  const std::shared_ptr<FakeStream> found = FindStream(stream);
  if (found == nullptr) return Error(kDeviceInvalidHandle, "IsCapturing");
  return found->capturing;
}

std::shared_ptr<FakeDevice::FakeEvent> FakeDevice::FindEvent(Event event) {
  const auto found = events_.find(event);
  if (found != events_.end()) return found->second;
  misuses_.push_back("an event that is not there");
  return nullptr;
}

absl::StatusOr<Stream> FakeDevice::MakeStream(StreamPriority priority) {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(Begin("CreateStream", Kind::kMakes));
  return reinterpret_cast<Stream>(StartStream(priority).get());
}

// What is enqueued still runs.
absl::Status FakeDevice::DestroyStream(Stream stream) {
  const std::lock_guard lock(mutex_);
  absl::Status error = Begin("DestroyStream", Kind::kFrees);
  if (lost_code_.load() != 0) return error;
  const std::shared_ptr<FakeStream> found = FindStream(stream);
  if (found == nullptr || IsDefault(*found)) return Error(kDeviceInvalidHandle, "DestroyStream");
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
  if (found->capturing) {
    found->captured_wrongly = true;
    return Error(kDeviceCaptureUnsupported, "IsIdle");
  }
  return found->idle();
}

absl::Status FakeDevice::Synchronize(Stream stream) {
  std::unique_lock lock(mutex_);
  RETURN_IF_ERROR(Begin("Synchronize", Kind::kWaits));
  const std::shared_ptr<FakeStream> found = FindStream(stream);
  if (found == nullptr) return Error(kDeviceInvalidHandle, "Synchronize");
  if (found->capturing) {
    found->captured_wrongly = true;
    return Error(kDeviceCaptureUnsupported, "Synchronize");
  }
  changed_.wait(lock, [&] { return Stopped() || found->idle(); });
  return lost_code_.load() == 0 ? absl::OkStatus() : Error(lost_code_.load(), "Synchronize");
}

absl::Status FakeDevice::StreamWait(Stream stream, Event event) {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(Begin("StreamWait", Kind::kPlain));
  const std::shared_ptr<FakeStream> found = FindStream(stream);
  const std::shared_ptr<FakeEvent> awaited = FindEvent(event);
  if (found == nullptr || awaited == nullptr) return Error(kDeviceInvalidHandle, "StreamWait");
  if (awaited->captured ||
      found->capturing) {  // a graph and what is outside do not wait for each other
    found->captured_wrongly = found->capturing;
    return Error(kDeviceCaptureIsolation, "StreamWait");
  }
  Push(*found, nullptr,
       [awaited, generation = awaited->recorded] { return awaited->done >= generation; });
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
  recorded->captured = found->capturing;
  if (recorded->captured) return absl::OkStatus();
  const uint64_t generation = ++recorded->recorded;
  Push(*found, nullptr, nullptr,
       [recorded, generation] { recorded->done = std::max(recorded->done, generation); });
  return absl::OkStatus();
}

absl::StatusOr<bool> FakeDevice::IsDone(Event event) {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(Begin("IsDone", Kind::kPlain));
  const std::shared_ptr<FakeEvent> found = FindEvent(event);
  if (found == nullptr) return Error(kDeviceInvalidHandle, "IsDone");
  if (found->captured) return Error(kDeviceCapturedEvent, "IsDone");
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
  Push(*found, [this, to, from = AsDeviceSees(from), bytes, within = from_device && to_device] {
    std::memcpy(to, from, bytes);
    if (within || options_.copy_us_per_mib == 0) return;
    const std::lock_guard engine(copy_engine_);
    const auto us = static_cast<double>(bytes) / (1 << 20) * options_.copy_us_per_mib;
    std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(us));
  });
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
  Push(*found, [to, byte, bytes] { std::memset(to, byte, bytes); });
  return absl::OkStatus();
}

absl::Status FakeDevice::Preprocess(const PreprocessLaunch& launch, Stream stream) {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(Begin("Preprocess", Kind::kPlain));
  const size_t out_bytes = launch.output.Bytes(launch.out_width, launch.out_height) * launch.count;
  const size_t sample_bytes = launch.count * sizeof(PreprocessSample);
  const bool has_samples = launch.source == nullptr ? InBlock(launch.samples, sample_bytes)
                                                    : InBlock(launch.source, sizeof(StepSource));
  if (!has_samples || !InBlock(launch.out, out_bytes) || !LabelsInBlock(launch) ||
      (launch.programs != nullptr &&
       !InBlock(launch.programs, launch.count * sizeof(PixelProgram)))) {
    return Misuse("Preprocess outside device memory", kDeviceInvalidValue);
  }
  const std::shared_ptr<FakeStream> found = FindStream(stream);
  if (found == nullptr) return Error(kDeviceInvalidHandle, "Preprocess");
  PushKernel(*found, [this, launch, sample_bytes] {
    if (!TablesInBlock(launch)) return;
    if (launch.source != nullptr && !NamesBlocks(*launch.source, launch, sample_bytes, 0)) return;
    const absl::Status done = PreprocessOnHost(launch);
    if (done.ok()) return;
    const std::lock_guard inner(mutex_);
    misuses_.push_back(std::string(done.message()));
  });
  return absl::OkStatus();
}

void FakeDevice::Enqueue(Stream stream, std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<FakeStream> found = FindStream(stream);
  if (found == nullptr) return;
  Push(*found, std::move(work));
}

absl::Status FakeDevice::AugmentRound(const RoundLaunch& launch, Stream stream) {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(Begin("AugmentRound", Kind::kPlain));
  const size_t levels = size_t{launch.width} * launch.height * launch.channels * launch.count;
  const size_t out_bytes =
      launch.output ? launch.output->Bytes(launch.width, launch.height) * launch.count : levels;
  if (!InBlock(launch.tails, launch.count * sizeof(RoundTail)) ||
      !InBlock(launch.programs, launch.count * sizeof(PixelProgram)) ||
      !InBlock(launch.from, levels) || !InBlock(launch.out, out_bytes) ||
      (launch.statistics != nullptr &&
       (!InBlock(launch.statistics, launch.count * sizeof(RoundStatistics)) ||
        !InBlock(launch.tables, launch.count * sizeof(RoundTables))))) {
    return Misuse("AugmentRound outside device memory", kDeviceInvalidValue);
  }
  const std::shared_ptr<FakeStream> found = FindStream(stream);
  if (found == nullptr) return Error(kDeviceInvalidHandle, "AugmentRound");
  PushKernel(*found, [this, launch] {
    if (TablesInBlock(launch)) AugmentRoundOnHost(launch);
  });
  return absl::OkStatus();
}

absl::Status FakeDevice::Gather(const GatherLaunch& launch, Stream stream) {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(Begin("Gather", Kind::kPlain));
  const size_t row_bytes = launch.count * sizeof(uint64_t);
  const bool has_rows = launch.source == nullptr ? InBlock(launch.rows, row_bytes)
                                                 : InBlock(launch.source, sizeof(StepSource));
  if (!has_rows || !InBlock(launch.out, launch.count * launch.row_bytes) ||
      !InBlock(launch.table, 1) || !LabelsInBlock(launch)) {
    return Misuse("Gather outside device memory", kDeviceInvalidValue);
  }
  const std::shared_ptr<FakeStream> found = FindStream(stream);
  if (found == nullptr) return Error(kDeviceInvalidHandle, "Gather");
  PushKernel(*found, [this, launch, row_bytes] {
    if (launch.source != nullptr && !NamesBlocks(*launch.source, launch, 0, row_bytes)) return;
    GatherOnHost(launch);
  });
  return absl::OkStatus();
}

}  // namespace shardpack

#include "cuda/loading/device_buffers.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr std::string_view kEncodedBytes = "a batch's encoded bytes";

// How often something is asked that no event tells.
constexpr std::chrono::microseconds kEventLook{200};

}  // namespace

absl::StatusOr<std::shared_ptr<DeviceBuffers>> DeviceBuffers::Create(Device& device,
                                                                     DeviceBufferSpec spec) {
  spec.buffers = std::max(spec.buffers, kMinBuffers);
  std::shared_ptr<DeviceBuffers> made(new DeviceBuffers(device, spec));
  absl::Status status = made->AllocateAll(spec.buffers);
  if (absl::IsResourceExhausted(status)) {
    ++made->shrinks_;
    made->FreeAll();
    status = made->AllocateAll(kMinBuffers);
    if (!status.ok()) {
      const size_t each = spec.pixel_bytes + spec.output_bytes + spec.raw_bytes;
      status = absl::Status(status.code(),
                            absl::StrCat(std::string(status.message()), "; not even ", kMinBuffers,
                                         " batches of ", each, " bytes fit on the device"));
    }
  }
  if (!status.ok()) return status;
  return made;
}

absl::Status DeviceBuffers::AllocateAll(uint32_t buffers) {
  if (spec_.scratch.bytes > 0) {
    ASSIGN_OR_RETURN(void* const scratch, device_.Allocate(spec_.scratch.bytes, "augmentation"));
    scratch_ = static_cast<uint8_t*>(scratch);
    device_bytes_ += spec_.scratch.bytes;
  }
  for (uint32_t i = 0; i < buffers; ++i) {
    all_.push_back(std::make_unique<DeviceBuffer>());
    RETURN_IF_ERROR(AllocateOne(*all_.back()));
    free_.push_back(all_.back().get());
  }
  return absl::OkStatus();
}

absl::Status DeviceBuffers::AllocateOne(DeviceBuffer& buffer) {
  size_t bytes = 0;
  const auto place = [&bytes](size_t wanted_bytes) {
    const size_t at = bytes;
    bytes += DeviceAligned(wanted_bytes);
    return at;
  };
  const size_t programs = spec_.programs * spec_.slots, tails = spec_.tails * spec_.slots;
  const size_t pixels_at = place(spec_.pixel_bytes), output_at = place(spec_.output_bytes);
  const size_t labels_at = place(spec_.slots * sizeof(int64_t));
  const size_t samples_at = place(spec_.samples ? spec_.slots * sizeof(PreprocessSample) : 0);
  const size_t programs_at = place(programs * sizeof(PixelProgram));
  const size_t tails_at = place(tails * sizeof(RoundTail));
  const size_t tables_at = place(programs * PixelProgram::kMaxTables * sizeof(PixelTable));
  bytes = std::max<size_t>(bytes, kDeviceAlignment);
  ASSIGN_OR_RETURN(buffer.memory, device_.Allocate(bytes, "a batch"));
  buffer.bytes = bytes;
  device_bytes_ += bytes;
  auto* const memory = static_cast<uint8_t*>(buffer.memory);
  buffer.pixels = memory + pixels_at;
  buffer.output = spec_.output_bytes > 0 ? memory + output_at : buffer.pixels;
  buffer.labels = reinterpret_cast<int64_t*>(memory + labels_at);
  if (spec_.samples) buffer.samples = reinterpret_cast<PreprocessSample*>(memory + samples_at);
  if (programs > 0) {
    buffer.programs = reinterpret_cast<PixelProgram*>(memory + programs_at);
    buffer.pixel_tables = reinterpret_cast<PixelTable*>(memory + tables_at);
  }
  if (tails > 0) buffer.tails = reinterpret_cast<RoundTail*>(memory + tails_at);
  ASSIGN_OR_RETURN(buffer.ready, device_.CreateEvent());
  ASSIGN_OR_RETURN(buffer.released, device_.CreateEvent());
  if (spec_.raw_bytes == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(void* const raw, device_.Allocate(spec_.raw_bytes, kEncodedBytes));
  buffer.raw = static_cast<uint8_t*>(raw);
  buffer.raw_bytes = spec_.raw_bytes;
  device_bytes_ += buffer.raw_bytes;
  return absl::OkStatus();
}

void DeviceBuffers::FreeOne(DeviceBuffer& buffer) {
  if (device_.lost()) return;
  if (buffer.memory != nullptr) (void)device_.Free(buffer.memory);
  if (buffer.raw != nullptr && !device_.lost()) (void)device_.Free(buffer.raw);
  for (const Event event : {buffer.ready, buffer.released}) {
    if (event != nullptr && !device_.lost()) (void)device_.DestroyEvent(event);
  }
}

void DeviceBuffers::FreeAll() {
  for (const auto& buffer : all_) FreeOne(*buffer);
  if (scratch_ != nullptr && !device_.lost()) (void)device_.Free(scratch_);
  scratch_ = nullptr;
  all_.clear();
  free_.clear();
  device_bytes_ = 0;
}

// Whether the device is done with it. An error counts as no.
bool DeviceBuffers::Idle(const DeviceBuffer& buffer) const {
  for (const Event event : Dependencies(buffer)) {
    const absl::StatusOr<bool> done = device_.IsDone(event);
    if (!done.ok() || !*done) return false;
  }
  return true;
}

absl::Status DeviceBuffers::WaitForUses(const DeviceBuffer& buffer) const {
  while (!Idle(buffer)) {
    if (device_.lost()) return device_.LostStatus();
    if (stop_ != nullptr && stop_->load()) return absl::CancelledError("the loader was stopped");
    std::this_thread::sleep_for(kEventLook);
  }
  return absl::OkStatus();
}

DeviceBuffers::~DeviceBuffers() {
  if (!InOwnProcess()) return;
  const auto deadline = std::chrono::steady_clock::now() + patience_;
  while (!device_.lost() && !ReturnCaptured()) {
    if (std::chrono::steady_clock::now() >= deadline) return;
    std::this_thread::sleep_for(kEventLook);
  }
  for (const auto& buffer : all_) {
    while (!device_.lost() && !Idle(*buffer)) {
      // Freeing would wait forever.
      if (std::chrono::steady_clock::now() >= deadline) return;
      std::this_thread::sleep_for(kEventLook);
    }
  }
  FreeAll();
}

DeviceBuffer* DeviceBuffers::TryTake() { return Take(std::chrono::microseconds(0)); }

DeviceBuffer* DeviceBuffers::Take(std::chrono::microseconds for_at_most) {
  if (!ReturnCaptured()) for_at_most = std::min(for_at_most, kEventLook);
  std::unique_lock lock(mutex_);
  if (free_.empty() && for_at_most.count() > 0) {
    returned_.wait_for(lock, for_at_most, [this] { return poked_ || !free_.empty(); });
    poked_ = false;
  }
  if (free_.empty()) return nullptr;
  DeviceBuffer* const buffer = free_.front();
  free_.pop_front();
  return buffer;
}

void DeviceBuffers::Poke() {
  {
    const std::lock_guard lock(mutex_);
    poked_ = true;
  }
  returned_.notify_all();
}

std::vector<Event> DeviceBuffers::Dependencies(const DeviceBuffer& buffer) const {
  std::vector<Event> events;
  if (buffer.was_ready) events.push_back(buffer.ready);
  if (buffer.was_released) events.push_back(buffer.released);
  return events;
}

absl::Status DeviceBuffers::ReserveRaw(DeviceBuffer& buffer, size_t bytes) {
  if (bytes <= buffer.raw_bytes) return absl::OkStatus();
  if (buffer.raw != nullptr) {
    RETURN_IF_ERROR(WaitForUses(buffer));
    absl::Status freed = device_.Free(buffer.raw);
    buffer.raw = nullptr;
    const std::lock_guard lock(mutex_);
    device_bytes_ -= std::exchange(buffer.raw_bytes, 0);
    ++growths_;
    if (!freed.ok() && device_.lost()) return freed;
  }
  // A quarter more, so that batches that differ a little do not each allocate.
  size_t room = DeviceAligned(bytes + bytes / 4);
  absl::StatusOr<void*> raw = device_.Allocate(room, kEncodedBytes);
  if (absl::IsResourceExhausted(raw.status())) {
    RETURN_IF_ERROR(FreeUnused());
    room = DeviceAligned(bytes);
    raw = device_.Allocate(room, kEncodedBytes);
  }
  RETURN_IF_ERROR(raw.status());
  buffer.raw = static_cast<uint8_t*>(*raw);
  const std::lock_guard lock(mutex_);
  buffer.raw_bytes = room;
  device_bytes_ += room;
  return absl::OkStatus();
}

absl::Status DeviceBuffers::FreeUnused() {
  std::unique_lock lock(mutex_);
  ++shrinks_;
  while (!free_.empty() && all_.size() > kMinBuffers) {
    DeviceBuffer* const buffer = free_.back();
    free_.pop_back();
    lock.unlock();
    absl::Status unused = WaitForUses(*buffer);
    lock.lock();
    if (!unused.ok()) {
      free_.push_back(buffer);
      return unused;
    }
    device_bytes_ -= buffer->bytes + buffer->raw_bytes;
    FreeOne(*buffer);
    if (device_.lost()) return device_.LostStatus();
    all_.erase(std::find_if(all_.begin(), all_.end(),
                            [buffer](const auto& each) { return each.get() == buffer; }));
  }
  return absl::OkStatus();
}

void DeviceBuffers::SetHeld(DeviceBuffer& buffer) {
  const std::lock_guard lock(mutex_);
  buffer.held = true;
}

absl::Status DeviceBuffers::GiveBack(DeviceBuffer& buffer, std::optional<Stream> stream) {
  absl::Status status;
  bool recorded = false;
  if (stream && !device_.lost()) {
    // If that cannot be asked, the event cannot be recorded either.
    const absl::StatusOr<bool> capturing = device_.IsCapturing(*stream);
    if (capturing.ok() && *capturing) {
      const std::lock_guard lock(mutex_);
      captured_.emplace_back(&buffer, *stream);
      return absl::OkStatus();
    }
    status = device_.RecordEvent(buffer.released, *stream);
    recorded = status.ok();
    // Without the event the host itself must wait for the stream.
    if (!recorded && !device_.lost()) {
      status = device_.Synchronize(*stream);
      // The buffer is given up: it is not known when it may be written again.
      if (!status.ok()) return status;
    }
  }
  {
    const std::lock_guard lock(mutex_);
    buffer.was_released = recorded;
    buffer.held = false;
    free_.push_back(&buffer);
  }
  returned_.notify_all();
  return status;
}

// False while there are some whose capture has not ended.
bool DeviceBuffers::ReturnCaptured() {
  std::vector<std::pair<DeviceBuffer*, Stream>> captured;
  {
    const std::lock_guard lock(mutex_);
    captured.swap(captured_);
  }
  for (const auto& [buffer, stream] : captured) (void)GiveBack(*buffer, stream);
  const std::lock_guard lock(mutex_);
  return captured_.empty();
}

std::string DeviceBuffers::Holders() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<uint64_t, uint64_t>> held;
  for (const auto& buffer : all_) {
    if (buffer->held) held.emplace_back(buffer->info.epoch, buffer->info.step);
  }
  std::sort(held.begin(), held.end());
  std::string text;
  for (const auto& [epoch, step] : held)
    absl::StrAppend(&text, text.empty() ? "" : ", ", "epoch ", epoch, " step ", step);
  return text;
}

uint32_t DeviceBuffers::buffers() const {
  const std::lock_guard lock(mutex_);
  return static_cast<uint32_t>(all_.size());
}
uint64_t DeviceBuffers::device_bytes() const {
  const std::lock_guard lock(mutex_);
  return device_bytes_;
}
uint64_t DeviceBuffers::shrinks() const {
  const std::lock_guard lock(mutex_);
  return shrinks_;
}
uint64_t DeviceBuffers::growths() const {
  const std::lock_guard lock(mutex_);
  return growths_;
}

}  // namespace shardpack

#include "cuda/loading/uploader.h"

#include <utility>

#include "cuda/device/leak.h"
#include "formats/io/status_macros.h"

namespace shardpack {

absl::StatusOr<std::unique_ptr<Uploader>> Uploader::Create(Device& device, size_t slots,
                                                           size_t staging_bytes,
                                                           HostMemory& memory) {
  if (slots == 0) return absl::InvalidArgumentError("an uploader without slots");
  std::unique_ptr<Uploader> made(new Uploader(device, memory));
  ASSIGN_OR_RETURN(made->stream_, device.CreateStream());
  made->slots_.reserve(slots);
  for (size_t i = 0; i < slots; ++i) {
    ASSIGN_OR_RETURN(const Event event, device.CreateEvent());
    made->slots_.emplace_back().event = event;
    if (staging_bytes == 0) continue;
    ASSIGN_OR_RETURN(made->slots_.back().staging, memory.Allocate(staging_bytes));
  }
  return made;
}

Uploader::~Uploader() {
  const bool unused = !stream_ || in_flight_ == 0;
  const bool idle = !device_.lost() && (unused || device_.WaitUntilIdle(*stream_, patience_));
  for (Slot& slot : slots_) {
    if (!idle && slot.batch != nullptr) Leak(std::move(slot.batch));
    if (idle && !device_.lost()) {
      (void)device_.DestroyEvent(slot.event);
      if (!slot.staging.empty()) memory_.Free(slot.staging);
    }
  }
  if (idle && stream_ && !device_.lost()) (void)device_.DestroyStream(*stream_);
}

absl::Status Uploader::Reclaim() {
  while (in_flight_ > 0) {
    Slot& slot = slots_[oldest_];
    ASSIGN_OR_RETURN(const bool done,
                     slot.has_event ? device_.IsDone(slot.event) : device_.IsIdle(*stream_));
    if (!done) return absl::OkStatus();
    slot.batch.reset();
    slot.has_event = true;
    oldest_ = (oldest_ + 1) % slots_.size();
    --in_flight_;
  }
  return absl::OkStatus();
}

std::span<std::byte> Uploader::staging() { return NextSlot().staging; }

absl::StatusOr<Event> Uploader::Upload(std::shared_ptr<HostBatch> batch,
                                       std::span<const UploadCopy> copies,
                                       std::span<const Event> dependencies) {
  Slot& slot = NextSlot();
  ++in_flight_;
  slot.batch = std::move(batch);
  absl::Status enqueued = Enqueue(copies, dependencies, slot.event);
  slot.has_event = enqueued.ok();
  if (!enqueued.ok()) return enqueued;
  ++uploads_;
  return slot.event;
}

void Uploader::KeepUntilIdle(std::shared_ptr<HostBatch> batch) {
  Slot& slot = NextSlot();
  ++in_flight_;
  slot.batch = std::move(batch);
  slot.has_event = false;
}

absl::Status Uploader::Enqueue(std::span<const UploadCopy> copies,
                               std::span<const Event> dependencies, Event done) {
  for (const Event event : dependencies) RETURN_IF_ERROR(device_.StreamWait(*stream_, event));
  for (const UploadCopy& copy : copies) {
    if (copy.bytes == 0) continue;
    RETURN_IF_ERROR(device_.CopyToDevice(copy.to, copy.from, copy.bytes, *stream_));
    uploaded_bytes_ += copy.bytes;
  }
  return device_.RecordEvent(done, *stream_);
}

}  // namespace shardpack

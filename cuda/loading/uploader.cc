#include "cuda/loading/uploader.h"

#include <utility>

#include "cuda/device/abandon.h"
#include "formats/io/status_macros.h"

namespace shardpack {

absl::StatusOr<std::unique_ptr<Uploader>> Uploader::Create(const DeviceApi& api, size_t slots,
                                                           size_t side_bytes, HostMemory& memory) {
  if (slots == 0) return absl::InvalidArgumentError("an uploader without slots");
  std::unique_ptr<Uploader> made(new Uploader(api, memory));
  RETURN_IF_ERROR(
      Checked(api, api.stream_create(api.self, &made->stream_), "making a stream for copies"));
  made->has_stream_ = true;
  made->slots_.reserve(slots);
  for (size_t i = 0; i < slots; ++i) {
    Event event = nullptr;
    RETURN_IF_ERROR(
        Checked(api, api.event_create(api.self, &event, false), "making an event for copies"));
    made->slots_.emplace_back().event = event;
    if (side_bytes == 0) continue;
    ASSIGN_OR_RETURN(std::span<std::byte> side, memory.Allocate(side_bytes));
    made->slots_.back().side = side;
  }
  return made;
}

Uploader::~Uploader() {
  const bool unused = !has_stream_ || in_flight_ == 0;
  const bool idle = !IsLost(api_) && (unused || WaitUntilIdle(api_, stream_, patience_));
  for (Slot& slot : slots_) {
    if (!idle && slot.batch) Abandon(*std::move(slot.batch));
    if (idle && !IsLost(api_)) {
      (void)Checked(api_, api_.event_destroy(api_.self, slot.event), "");
      if (!slot.side.empty()) memory_.Free(slot.side);
    }
  }
  if (idle && has_stream_ && !IsLost(api_))
    (void)Checked(api_, api_.stream_destroy(api_.self, stream_), "");
}

absl::Status Uploader::Reclaim() {
  while (in_flight_ > 0) {
    Slot& slot = slots_[oldest_];
    const DeviceStatus done = slot.broken ? api_.stream_query(api_.self, stream_)
                                          : api_.event_query(api_.self, slot.event);
    if (done.code == kDeviceNotReady) return absl::OkStatus();
    RETURN_IF_ERROR(Checked(api_, done, "asking whether a copy is done"));
    slot.batch.reset();
    slot.broken = false;
    oldest_ = (oldest_ + 1) % slots_.size();
    --in_flight_;
  }
  return absl::OkStatus();
}

std::span<std::byte> Uploader::side() {
  return slots_[(oldest_ + in_flight_) % slots_.size()].side;
}

std::optional<uint64_t> Uploader::oldest_step() const {
  if (in_flight_ == 0) return std::nullopt;
  return slots_[oldest_].step;
}

absl::Status Uploader::Upload(std::optional<HostBatch> batch, std::span<const UploadCopy> copies,
                              std::span<const Event> after, Event* copied) {
  Slot& slot = slots_[(oldest_ + in_flight_) % slots_.size()];
  ++in_flight_;
  slot.step = batch ? batch->step() : 0;
  slot.batch = std::move(batch);
  absl::Status enqueued = Enqueue(copies, after, slot.event);
  slot.broken = !enqueued.ok();
  if (!enqueued.ok()) return enqueued;
  ++uploads_;
  *copied = slot.event;
  return absl::OkStatus();
}

absl::Status Uploader::Enqueue(std::span<const UploadCopy> copies, std::span<const Event> after,
                               Event done) {
  for (const Event event : after) {
    RETURN_IF_ERROR(Checked(api_, api_.stream_wait(api_.self, stream_, event),
                            "making a copy wait for the last use of its place"));
  }
  for (const UploadCopy& copy : copies) {
    if (copy.bytes == 0) continue;
    RETURN_IF_ERROR(Checked(api_,
                            api_.copy_to_device(api_.self, copy.to, copy.from, copy.bytes, stream_),
                            "copying a batch to the device"));
    uploaded_bytes_ += copy.bytes;
  }
  return Checked(api_, api_.event_record(api_.self, done, stream_), "recording the end of a copy");
}

}  // namespace shardpack

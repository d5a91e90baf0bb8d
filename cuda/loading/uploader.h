// Uploader: copies batches to the device on a stream of its own, and gives their memory back when
// the device has read it.
//
//   absl::StatusOr<std::unique_ptr<Uploader>> up = Uploader::Create(device, 2, 4096, memory);
//   if ((*up)->Reclaim().ok() && !(*up)->full())
//     copied = (*up)->Upload(std::move(host_batch), copies, wait_for);
//   status = device.StreamWait(work_stream, *copied);
//
// A slot is one upload under way: its batch, a little page-locked staging memory for what the host
// adds (labels, parameters), and an event. The host never waits: Reclaim asks the events.
//
// Lifetime: the device and the memory outlive it. The destructor waits for the device for
// `patience` at most; what is still being read then is never given back.
// Thread-safety: one thread at a time.
// Errors: those of the calls; after one, what was enqueued keeps its memory until the stream is
// idle.
// Units: bytes.
#ifndef SHARDPACK_CUDA_LOADING_UPLOADER_H_
#define SHARDPACK_CUDA_LOADING_UPLOADER_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuda/device/device.h"
#include "readers/loading/host_batch.h"
#include "readers/loading/host_memory.h"

namespace shardpack {

struct UploadCopy {
  const void* from = nullptr;
  void* to = nullptr;  // on the device
  size_t bytes = 0;
};

class Uploader {
 public:
  // `slots` uploads at once, each with `staging_bytes` (may be 0) of page-locked memory of
  // `memory`.
  static absl::StatusOr<std::unique_ptr<Uploader>> Create(Device& device, size_t slots,
                                                          size_t staging_bytes, HostMemory& memory);
  ~Uploader();
  Uploader(const Uploader&) = delete;
  Uploader& operator=(const Uploader&) = delete;

  Stream stream() const { return *stream_; }
  // Uploads that Reclaim has not seen done.
  size_t in_flight() const { return in_flight_; }
  bool full() const { return in_flight_ == slots_.size(); }

  // Gives back the batches whose copies are done.
  absl::Status Reclaim();
  // Memory of the next upload. Not while full().
  std::span<std::byte> staging();
  // Enqueues the copies after the events `dependencies`, and then the event of the slot, which is
  // the result; the slot's next use records it again. `batch` may be nullptr. Not while full().
  absl::StatusOr<Event> Upload(std::shared_ptr<HostBatch> batch, std::span<const UploadCopy> copies,
                               std::span<const Event> dependencies);
  // Keeps a batch that work on the stream may still read, without copying it. Not while full().
  void KeepUntilIdle(std::shared_ptr<HostBatch> batch);
  uint64_t uploaded_bytes() const { return uploaded_bytes_; }
  uint64_t uploads() const { return uploads_; }
  void set_patience(std::chrono::milliseconds patience) { patience_ = patience; }

 private:
  struct Slot {
    std::shared_ptr<HostBatch> batch;
    std::span<std::byte> staging;
    Event event = nullptr;
    bool has_event = true;  // else the stream itself is asked: no event was recorded
  };

  Uploader(Device& device, HostMemory& memory) : device_(device), memory_(memory) {}
  Slot& NextSlot() { return slots_[(oldest_ + in_flight_) % slots_.size()]; }
  absl::Status Enqueue(std::span<const UploadCopy> copies, std::span<const Event> dependencies,
                       Event done);

  Device& device_;
  HostMemory& memory_;
  std::chrono::milliseconds patience_{5000};
  std::optional<Stream> stream_;
  std::vector<Slot> slots_;  // a ring
  size_t oldest_ = 0, in_flight_ = 0;
  uint64_t uploaded_bytes_ = 0, uploads_ = 0;
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_LOADING_UPLOADER_H_

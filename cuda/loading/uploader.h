// Uploader: copies batches to the device on a stream of its own, and gives their memory back when
// the device has read it.
//
//   absl::StatusOr<std::unique_ptr<Uploader>> up = Uploader::Create(api, 2, 4096, memory);
//   if ((*up)->Reclaim().ok() && !(*up)->full())
//     status = (*up)->Upload(std::move(host_batch), copies, wait_for, &copied);
//   api.stream_wait(api.self, work_stream, copied);
//
// A slot is one upload under way: its batch, a little page-locked memory of its own for what the
// host adds (labels, parameters), and an event. The host never waits: Reclaim asks the events.
//
// Lifetime: the table and the memory outlive it. The destructor waits for the device for `patience`
// at most; what is then still being read is never given back.
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
#include "cuda/device/device_api.h"
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
  // `slots` uploads at once, each with `side_bytes` (may be 0) of page-locked memory of `memory`.
  static absl::StatusOr<std::unique_ptr<Uploader>> Create(const DeviceApi& api, size_t slots,
                                                          size_t side_bytes, HostMemory& memory);
  ~Uploader();
  Uploader(const Uploader&) = delete;
  Uploader& operator=(const Uploader&) = delete;

  Stream stream() const { return stream_; }
  size_t slots() const { return slots_.size(); }
  // Uploads that Reclaim has not seen done.
  size_t in_flight() const { return in_flight_; }
  bool full() const { return in_flight_ == slots_.size(); }

  // Gives back the batches whose copies are done.
  absl::Status Reclaim();
  // Of the next upload; not while full().
  std::span<std::byte> side();
  // Enqueues the copies behind the events of `after`, and then the event of the slot, which is
  // `*copied` until the slot is used again. The batch may be none. Not while full().
  absl::Status Upload(std::optional<HostBatch> batch, std::span<const UploadCopy> copies,
                      std::span<const Event> after, Event* copied);
  // The oldest upload that is under way, to say what is waited for; nullopt without.
  std::optional<uint64_t> oldest_step() const;
  uint64_t uploaded_bytes() const { return uploaded_bytes_; }
  uint64_t uploads() const { return uploads_; }
  void set_patience(std::chrono::milliseconds patience) { patience_ = patience; }

 private:
  struct Slot {
    std::optional<HostBatch> batch;
    std::span<std::byte> side;
    Event event = nullptr;
    uint64_t step = 0;
    bool broken = false;  // has no event to ask: a call failed
  };

  Uploader(const DeviceApi& api, HostMemory& memory) : api_(api), memory_(memory) {}
  absl::Status Enqueue(std::span<const UploadCopy> copies, std::span<const Event> after,
                       Event done);

  const DeviceApi& api_;
  HostMemory& memory_;
  std::chrono::milliseconds patience_{5000};
  Stream stream_ = nullptr;
  bool has_stream_ = false;
  std::vector<Slot> slots_;  // a ring
  size_t oldest_ = 0, in_flight_ = 0;
  uint64_t uploaded_bytes_ = 0, uploads_ = 0;
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_LOADING_UPLOADER_H_

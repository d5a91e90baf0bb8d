// DeviceBatch: the samples of one step, on the device, for the consumer's streams.
//
//   absl::Status status = batch.WaitOn(stream);       // the stream waits, not the host
//   Train<<<..., stream>>>(batch.pixels()->data, batch.labels()->data);
//   status = batch.Release(stream);                   // used until what runs there now
//
// Its memory is written again after Release, or after the batch is destroyed: then it counts as
// used until what was enqueued by that time on the stream of the last WaitOn (without one, as never
// used; of a per-thread default stream, which another thread does not find, on the legacy one).
// While that stream captures a graph, the memory stays in use until the capture ends. A consumer
// with several streams makes the last one wait for the others first. The streams of WaitOn exist
// until then. After Release neither the tensors nor info() may be used any more.
//
// Lifetime: move-only; may outlive the loader, not the device.
// Thread-safety: one thread at a time.
// Errors: FailedPrecondition after Release, in a forked child, and from WaitOn for a stream that
// captures a graph; Unavailable on a lost device; those of the calls.
// Units: bytes; shapes in elements, rows without gaps.
#ifndef SHARDPACK_CUDA_LOADING_DEVICE_BATCH_H_
#define SHARDPACK_CUDA_LOADING_DEVICE_BATCH_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuda/loading/device_buffers.h"
#include "images/pixels/pixel_output.h"

namespace shardpack {

enum class TensorType : uint8_t { kU8, kF16, kBf16, kF32, kI64 };

size_t TensorTypeBytes(TensorType type);
TensorType TensorTypeOf(PixelType type);

struct DeviceTensor {
  void* data = nullptr;
  DeviceKind kind = DeviceKind::kHost;
  int device = 0;
  TensorType type = TensorType::kU8;
  std::array<int64_t, 5> shape = {};
  uint32_t dimensions = 0;

  size_t bytes() const;
};

// The shape is {slots, height, width, channels}, or {slots, channels, height, width}.
DeviceTensor PixelTensor(const Device& device, void* data, const OutputFormat& format,
                         uint32_t slots, uint32_t height, uint32_t width, uint32_t channels);

// FailedPrecondition while the stream captures a graph.
absl::Status CheckNotCapturing(Device& device, Stream stream);

class DeviceBatch {
 public:
  // For loaders: a filled buffer, and its pixels, if it has any.
  DeviceBatch(std::shared_ptr<DeviceBuffers> buffers, DeviceBuffer& buffer,
              std::optional<DeviceTensor> pixels, bool labels);
  DeviceBatch(DeviceBatch&& other) noexcept { *this = std::move(other); }
  DeviceBatch& operator=(DeviceBatch&& other) noexcept;
  ~DeviceBatch() { GiveBack(); }

  const BatchInfo& info() const { return buffer_->info; }
  size_t size() const { return buffer_->info.ids.size(); }
  // nullptr if the loader does not decode, or labels are not copied.
  const DeviceTensor* pixels() const { return pixels_ ? &*pixels_ : nullptr; }
  const DeviceTensor* labels() const { return labels_ ? &*labels_ : nullptr; }
  // Encoded bytes; data == nullptr if the sample has no such field, or it was decoded.
  DeviceBytes bytes(size_t field, size_t slot) const {
    return buffer_->fields[field * size() + slot];
  }
  size_t fields() const { return size() == 0 ? 0 : buffer_->fields.size() / size(); }

  // What is enqueued on the stream from now on runs once the batch is there.
  absl::Status WaitOn(Stream stream);
  // The same for the host, and so for any stream: returns once the batch is there, or the device is
  // lost. Without Release, the destructor releases on the stream of the last WaitOn, or else on the
  // legacy stream, which non-blocking streams run past.
  absl::Status Synchronize();
  // Whether it is there within this time; if not, it may be called again.
  absl::StatusOr<bool> SynchronizeWithin(std::chrono::milliseconds patience);
  absl::Status Release(Stream stream);

 private:
  void GiveBack();
  absl::Status Check() const;

  std::shared_ptr<DeviceBuffers> buffers_;  // nullptr: moved from, or released
  DeviceBuffer* buffer_ = nullptr;
  std::optional<DeviceTensor> pixels_, labels_;
  std::optional<Stream> last_stream_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_LOADING_DEVICE_BATCH_H_

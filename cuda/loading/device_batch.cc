#include "cuda/loading/device_batch.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "formats/io/status_macros.h"

namespace shardpack {

size_t TensorTypeBytes(TensorType type) {
  switch (type) {
    case TensorType::kU8:
      return 1;
    case TensorType::kF16:
    case TensorType::kBf16:
      return 2;
    case TensorType::kF32:
      return 4;
    case TensorType::kI64:
      return 8;
  }
  return 0;
}

TensorType TensorTypeOf(PixelType type) {
  switch (type) {
    case PixelType::kU8:
      return TensorType::kU8;
    case PixelType::kF32:
      return TensorType::kF32;
    case PixelType::kF16:
      return TensorType::kF16;
    case PixelType::kBf16:
      return TensorType::kBf16;
  }
  return TensorType::kU8;
}

size_t DeviceTensor::bytes() const {
  size_t elements = 1;
  for (uint32_t i = 0; i < dimensions; ++i) elements *= static_cast<size_t>(shape[i]);
  return elements * TensorTypeBytes(type);
}

DeviceTensor PixelTensor(const Device& device, void* data, const OutputFormat& format,
                         uint32_t slots, uint32_t height, uint32_t width, uint32_t channels) {
  DeviceTensor tensor{.data = data,
                      .kind = device.kind(),
                      .device = device.number(),
                      .type = TensorTypeOf(format.type),
                      .shape = {slots, height, width, channels},
                      .dimensions = 4};
  if (format.layout == PixelLayout::kNchw) tensor.shape = {slots, channels, height, width};
  return tensor;
}

absl::Status CheckNotCapturing(Device& device, Stream stream) {
  ASSIGN_OR_RETURN(const bool capturing, device.IsCapturing(stream));
  if (!capturing) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "the stream captures a graph, which cannot wait for a batch: wait before the capture, or "
      "between the graph's launches put each batch into its memory (NextInto of a DeviceLoader, "
      "NextStep of a ResidentLoader)");
}

DeviceBatch::DeviceBatch(std::shared_ptr<DeviceBuffers> buffers, DeviceBuffer& buffer,
                         std::optional<DeviceTensor> pixels, bool labels)
    : buffers_(std::move(buffers)), buffer_(&buffer), pixels_(pixels) {
  if (labels) {
    labels_ = DeviceTensor{.data = buffer.labels,
                           .kind = buffers_->device().kind(),
                           .device = buffers_->device().number(),
                           .type = TensorType::kI64,
                           .shape = {static_cast<int64_t>(buffer.info.ids.size())},
                           .dimensions = 1};
  }
}

DeviceBatch& DeviceBatch::operator=(DeviceBatch&& other) noexcept {
  if (this == &other) return *this;
  GiveBack();
  buffers_ = std::move(other.buffers_);
  buffer_ = std::exchange(other.buffer_, nullptr);
  pixels_ = other.pixels_;
  labels_ = other.labels_;
  last_stream_ = other.last_stream_;
  return *this;
}

absl::Status DeviceBatch::Check() const {
  if (buffers_ == nullptr) {
    return absl::FailedPreconditionError("the batch has been released already");
  }
  if (!buffers_->InOwnProcess()) {
    return absl::FailedPreconditionError(
        "the batch belongs to the process before a fork: a device does not survive it");
  }
  if (buffers_->device().lost()) return buffers_->device().LostStatus();
  return absl::OkStatus();
}

absl::Status DeviceBatch::WaitOn(Stream stream) {
  RETURN_IF_ERROR(Check());
  RETURN_IF_ERROR(CheckNotCapturing(buffers_->device(), stream));
  RETURN_IF_ERROR(buffers_->device().StreamWait(stream, buffer_->ready));
  last_stream_ = stream;
  return absl::OkStatus();
}

absl::Status DeviceBatch::Synchronize() {
  for (;;) {
    ASSIGN_OR_RETURN(const bool there, SynchronizeWithin(std::chrono::hours(1)));
    if (there) return absl::OkStatus();
  }
}

absl::StatusOr<bool> DeviceBatch::SynchronizeWithin(std::chrono::milliseconds patience) {
  using std::chrono::microseconds;
  using Clock = std::chrono::steady_clock;
  RETURN_IF_ERROR(Check());
  Device& device = buffers_->device();
  const Clock::time_point deadline = Clock::now() + patience;
  for (microseconds nap(10);; nap = std::min(nap * 2, microseconds(500))) {
    ASSIGN_OR_RETURN(const bool done, device.IsDone(buffer_->ready));
    if (done) break;
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(nap);
  }
  if (!last_stream_) last_stream_ = LegacyStream();
  return true;
}

absl::Status DeviceBatch::Release(Stream stream) {
  RETURN_IF_ERROR(Check());
  const std::shared_ptr<DeviceBuffers> buffers = std::move(buffers_);
  buffers_ = nullptr;
  return buffers->GiveBack(*buffer_, stream);
}

void DeviceBatch::GiveBack() {
  if (buffers_ == nullptr) return;
  const std::shared_ptr<DeviceBuffers> buffers = std::move(buffers_);
  buffers_ = nullptr;
  // A collector's thread has another stream of this name; the legacy stream is behind those of all
  // threads.
  if (last_stream_ == ThreadStream()) last_stream_ = LegacyStream();
  // In a forked child nothing of the device is touched.
  if (buffers->InOwnProcess()) (void)buffers->GiveBack(*buffer_, last_stream_);
}

}  // namespace shardpack

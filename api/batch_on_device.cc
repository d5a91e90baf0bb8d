#include "api/batch_on_device.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/any_loader.h"
#include "formats/io/status_macros.h"

namespace shardpack::api {
namespace {

// In place of a stream that is to wait.
const Stream kHost = reinterpret_cast<Stream>(intptr_t{-1});

uint32_t TypeOf(TensorType type) {
  switch (type) {
    case TensorType::kF32:
      return SHARDPACK_F32;
    case TensorType::kF16:
      return SHARDPACK_F16;
    case TensorType::kBf16:
      return SHARDPACK_BF16;
    default:
      return SHARDPACK_U8;
  }
}

}  // namespace

absl::Status CheckIsStream(Stream stream) {
  if (stream != kHost) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "-1 is not a stream here: it does not say where the memory is used");
}

BatchOnDevice::BatchOnDevice(BatchInfo info, std::optional<DeviceBatch> batch,
                             std::shared_ptr<const BatchesOnDevice> common)
    : info_(std::move(info)),
      batch_(batch ? std::make_unique<DeviceBatch>(*std::move(batch)) : nullptr),
      had_batch_(batch_ != nullptr),
      common_(std::move(common)) {
  for (const SampleStatus& status : info_.status)
    states_.push_back(static_cast<uint8_t>(status.state));
}

// The memory has a lock, which in a forked child nobody may ever release.
BatchOnDevice::~BatchOnDevice() {
  if (::getpid() != process_) (void)batch_.release();
}

void BatchOnDevice::View(shardpack_batch_view& view) const {
  view.epoch = info_.epoch;
  view.step = info_.step;
  view.slots = info_.ids.size();
  view.ids = info_.ids.data();
  view.labels = info_.labels.data();
  view.states = states_.data();
  const bool host = common_->device.kind() == DeviceKind::kHost;
  view.device_kind = host ? SHARDPACK_HOST : SHARDPACK_CUDA;
  view.device_number = host ? -1 : common_->device.number();
  const auto held = Hold();
  if (!held.ok()) return;
  view.fields = static_cast<uint32_t>(std::min(batch_->fields(), common_->fields.size()));
  if (batch_->pixels() != nullptr) ViewPixels(*batch_->pixels(), view);
  if (batch_->labels() != nullptr)
    view.device_labels = static_cast<int64_t*>(batch_->labels()->data);
}

void BatchOnDevice::ViewPixels(const DeviceTensor& pixels, shardpack_batch_view& view) const {
  const bool planes = common_->layout == PixelLayout::kNchw;
  view.pixels = pixels.data;
  view.pixel_bytes = pixels.bytes();
  view.height = static_cast<uint32_t>(pixels.shape[planes ? 2 : 1]);
  view.width = static_cast<uint32_t>(pixels.shape[planes ? 3 : 2]);
  view.channels = static_cast<uint32_t>(pixels.shape[planes ? 1 : 3]);
  view.type = TypeOf(pixels.type);
  view.layout = planes ? SHARDPACK_NCHW : SHARDPACK_NHWC;
}

absl::StatusOr<std::unique_lock<std::mutex>> BatchOnDevice::Hold() const {
  if (::getpid() != process_) {
    return absl::FailedPreconditionError(
        "the memory of the batch is on a device, which a forked process cannot use");
  }
  std::unique_lock lock(mutex_);
  if (batch_ != nullptr) return lock;
  return absl::FailedPreconditionError(
      had_batch_ ? "the memory of the batch has been given back already"
                 : "the batch was copied to the caller's memory and has none of its own");
}

absl::StatusOr<std::string_view> BatchOnDevice::Field(uint32_t n) const {
  const auto held = Hold();
  if (!held.ok() || n >= batch_->fields() || n >= common_->fields.size())
    return absl::OutOfRangeError(absl::StrCat("no field ", n, " in this batch"));
  return common_->fields[n];
}

absl::Status BatchOnDevice::Spans(std::string_view field, std::span<shardpack_span> spans) const {
  ASSIGN_OR_RETURN(const auto held, Hold());
  const auto at = std::ranges::find(common_->fields, field);
  const auto number = static_cast<size_t>(at - common_->fields.begin());
  if (at == common_->fields.end() || number >= batch_->fields()) {
    return absl::NotFoundError(
        absl::StrCat("the batch has no bytes of a field \"", std::string(field), "\""));
  }
  for (size_t slot = 0; slot < spans.size(); ++slot) {
    const DeviceBytes bytes = batch_->bytes(number, slot);
    spans[slot] = {bytes.data, bytes.size};
  }
  return absl::OkStatus();
}

absl::Status BatchOnDevice::Crops(std::span<shardpack_crop>) const {
  return absl::UnimplementedError(
      "a batch of a loader with a device has no crops, also where the device is the CPU; those of "
      "a loader without a device do");
}

absl::StatusOr<DeviceTensor> BatchOnDevice::Tensor(uint32_t what) const {
  ASSIGN_OR_RETURN(const auto held, Hold());
  const DeviceTensor* const tensor = what == SHARDPACK_PIXELS
                                         ? batch_->pixels()
                                         : (what == SHARDPACK_LABELS ? batch_->labels() : nullptr);
  if (tensor == nullptr) {
    return absl::NotFoundError(what == SHARDPACK_PIXELS   ? "the batch has no pixels"
                               : what == SHARDPACK_LABELS ? "the labels are not on the device"
                                                          : "no such tensor");
  }
  return *tensor;
}

absl::Status BatchOnDevice::WaitOn(Stream stream) {
  if (stream == kHost) return Synchronize(-1).status();
  ASSIGN_OR_RETURN(const auto held, Hold());
  return batch_->WaitOn(stream);
}

// Others use the batch meanwhile.
absl::StatusOr<bool> BatchOnDevice::Synchronize(int64_t wait_ms) {
  using std::chrono::microseconds;
  const auto deadline = std::chrono::steady_clock::now() + EndedFlag::LimitedWait(wait_ms);
  for (microseconds nap(10);; nap = std::min(nap * 2, microseconds(500))) {
    {
      ASSIGN_OR_RETURN(const auto held, Hold());
      ASSIGN_OR_RETURN(const bool there, batch_->SynchronizeWithin(std::chrono::milliseconds(0)));
      if (there) return true;
    }
    if (wait_ms >= 0 && std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(nap);
  }
}

absl::Status BatchOnDevice::ReleaseOn(Stream stream) {
  ASSIGN_OR_RETURN(const auto held, Hold());
  RETURN_IF_ERROR(CheckIsStream(stream));
  const absl::Status released = batch_->Release(stream);
  if (released.ok()) batch_ = nullptr;
  return released;
}

}  // namespace shardpack::api

// BatchOnDevice: the AnyBatch whose pixels and encoded bytes are in the memory of a device.
//
//   return Taken{SHARDPACK_OK, std::make_shared<BatchOnDevice>(*std::move(batch), layout)};
//
// Ids, labels and states are copied, so they stay after ReleaseOn.
// In a forked child, where the device cannot be used, only they are left.
//
// Lifetime: may outlive its loader, not the device, which is static.
// Thread-safety, errors: as AnyBatch.
#ifndef SHARDPACK_API_BATCH_ON_DEVICE_H_
#define SHARDPACK_API_BATCH_ON_DEVICE_H_

#include <unistd.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "api/any_batch.h"
#include "cuda/loading/device_buffers.h"

namespace shardpack::api {

// What the batches of a loader have in common.
struct BatchesOnDevice {
  Device& device;
  std::vector<std::string> fields;  // of encoded bytes
  PixelLayout layout = PixelLayout::kNhwc;
};

// InvalidArgument for -1, which stands for the host where something waits.
absl::Status CheckIsStream(Stream stream);

class BatchOnDevice final : public AnyBatch {
 public:
  // Without a batch: facts alone.
  BatchOnDevice(BatchInfo info, std::optional<DeviceBatch> batch,
                std::shared_ptr<const BatchesOnDevice> common);
  ~BatchOnDevice() override;

  void View(shardpack_batch_view& view) const override;
  size_t slots() const override { return info_.ids.size(); }
  const SampleStatus& status(size_t slot) const override { return info_.status[slot]; }
  uint64_t id(size_t slot) const override { return info_.ids[slot]; }
  absl::StatusOr<std::string_view> Field(uint32_t n) const override;
  absl::Status Spans(std::string_view field, std::span<shardpack_span> spans) const override;
  absl::Status Crops(std::span<shardpack_crop> crops) const override;
  absl::StatusOr<DeviceTensor> Tensor(uint32_t what) const override;
  absl::Status WaitOn(Stream stream) override;
  absl::StatusOr<bool> Synchronize(int64_t wait_ms) override;
  absl::Status ReleaseOn(Stream stream) override;

 private:
  void ViewPixels(const DeviceTensor& pixels, shardpack_batch_view& view) const;
  // While it is held, the batch is there and is not given back.
  absl::StatusOr<std::unique_lock<std::mutex>> Hold() const;

  const pid_t process_ = ::getpid();
  const BatchInfo info_;
  std::vector<uint8_t> states_;
  mutable std::mutex mutex_;            // of the batch; in a forked child nobody may release it
  std::unique_ptr<DeviceBatch> batch_;  // nullptr: none, or released
  const bool had_batch_;
  const std::shared_ptr<const BatchesOnDevice> common_;
};

}  // namespace shardpack::api

#endif  // SHARDPACK_API_BATCH_ON_DEVICE_H_

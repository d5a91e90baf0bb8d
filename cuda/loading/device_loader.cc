#include "cuda/loading/device_loader.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cuda/loading/device_loader_core.h"
#include "formats/io/status_macros.h"

namespace shardpack {

absl::Status CheckTarget(const DeviceTarget& target, size_t pixel_bytes, size_t slots) {
  if (target.pixels == nullptr) return absl::InvalidArgumentError("the target has no pixels");
  if (target.pixel_bytes != pixel_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the target has ", target.pixel_bytes, " bytes, a batch ", pixel_bytes));
  }
  if (target.label_bytes == 0) return absl::OkStatus();
  if (target.labels == nullptr)
    return absl::InvalidArgumentError("the target has label_bytes, but no labels");
  const size_t label_bytes = slots * sizeof(int64_t);
  if (target.label_bytes == label_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the labels of the target have ",
                                                 target.label_bytes, " bytes, those of a batch ",
                                                 label_bytes));
}

absl::StatusOr<DeviceLoader> DeviceLoader::Open(Loader loader, const DeviceOptions& options,
                                                Device& device, const Interrupted& interrupted) {
  auto core = std::make_unique<Core>(std::move(loader), options, device);
  RETURN_IF_ERROR(core->Open(interrupted));
  return DeviceLoader(std::move(core));
}

DeviceLoader::DeviceLoader(std::unique_ptr<Core> core) : core_(std::move(core)) {}
DeviceLoader::DeviceLoader(DeviceLoader&&) noexcept = default;
DeviceLoader& DeviceLoader::operator=(DeviceLoader&& other) noexcept {
  std::swap(core_, other.core_);
  return *this;
}
// A forked child has no thread to join, and no device.
DeviceLoader::~DeviceLoader() {
  if (core_ != nullptr && !core_->InOwnProcess()) (void)core_.release();
}

absl::StatusOr<std::optional<DeviceBatch>> DeviceLoader::Next(const Interrupted& interrupted,
                                                              AskAt ask_at) {
  return core_->Next(interrupted, ask_at);
}
absl::StatusOr<std::optional<BatchInfo>> DeviceLoader::NextInto(const DeviceTarget& target,
                                                                Stream stream) {
  return core_->NextInto(target, stream);
}
Cursor DeviceLoader::cursor() const { return core_->InOwnProcess() ? core_->cursor() : Cursor(); }
DeviceLoaderStats DeviceLoader::stats() const {
  return core_->InOwnProcess() ? core_->stats() : DeviceLoaderStats();
}
std::vector<BadSample> DeviceLoader::TakeBadSamples() {
  return core_->InOwnProcess() ? core_->TakeBadSamples() : std::vector<BadSample>();
}
void DeviceLoader::Stop() {
  if (core_->InOwnProcess()) core_->Stop();
}

}  // namespace shardpack

#include "cuda/loading/device_loader.h"

#include <utility>

#include "absl/status/status.h"
#include "cuda/loading/device_loader_core.h"
#include "formats/io/status_macros.h"

namespace shardpack {

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

// LoaderOnDevice: the AnyLoader whose batches are on a device: those of another loader, or of a
// dataset that stays there. It opens on a thread of its own, since that takes the first batch, or
// all of the dataset.
//
//   ASSIGN_OR_RETURN(auto loader, LoaderOnDevice::Open(std::move(opener), common));
//   ASSIGN_OR_RETURN(const shardpack_code opened, loader->Opened(wait_ms));
//
// Lifetime: the destructor stops it and waits for its threads; batches may outlive it.
// Thread-safety: as AnyLoader.
// Errors: those of DeviceLoader and ResidentLoader; those of opening from Opened and Next.
#ifndef SHARDPACK_API_LOADER_ON_DEVICE_H_
#define SHARDPACK_API_LOADER_ON_DEVICE_H_

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "api/any_loader.h"
#include "api/batch_on_device.h"
#include "cuda/loading/device_loader.h"
#include "cuda/loading/resident_loader.h"
#include "readers/loading/host_memory.h"

namespace shardpack::api {

// What DeviceLoader and ResidentLoader have in common. Next, as theirs, is of one thread at a time;
// everything else of any.
class DeviceSource {
 public:
  virtual ~DeviceSource() = default;
  virtual absl::StatusOr<std::optional<DeviceBatch>> Next(const Interrupted& interrupted,
                                                          AskAt ask_at) = 0;
  virtual absl::Status EnqueueStep(const DeviceTarget&, Stream) { return NoSteps(); }
  virtual absl::StatusOr<std::optional<BatchInfo>> NextStep(Stream, const Interrupted&, AskAt) {
    return NoSteps();
  }
  virtual Cursor cursor() const = 0;
  virtual std::string StatsJson() const = 0;
  virtual std::string Explain() const = 0;
  virtual std::vector<BadSample> TakeBadSamples() = 0;
  virtual void Stop() = 0;
};

// `memory`, which the loader uses, is kept.
std::unique_ptr<DeviceSource> SourceOf(DeviceLoader loader, std::shared_ptr<HostMemory> memory);
std::unique_ptr<DeviceSource> SourceOf(ResidentLoader loader);

// Called once, on another thread. Cancelled when interrupted.
using DeviceOpener =
    std::function<absl::StatusOr<std::unique_ptr<DeviceSource>>(const Interrupted& interrupted)>;

class LoaderOnDevice final : public AnyLoader {
 public:
  // `start`: what the cursor is before it is open.
  LoaderOnDevice(DeviceOpener opener, std::shared_ptr<const BatchesOnDevice> common,
                 const Cursor& start);
  ~LoaderOnDevice() override;

  absl::StatusOr<Taken> Next(int64_t wait_ms) override;
  absl::StatusOr<shardpack_code> Opened(int64_t wait_ms) override;
  absl::StatusOr<Taken> NextInto(int64_t wait_ms, const shardpack_target& target,
                                 Stream stream) override;
  // FailedPrecondition before it is open.
  absl::Status EnqueueStep(const shardpack_target& target, Stream stream) override;
  absl::StatusOr<Taken> NextStep(int64_t wait_ms, Stream stream) override;
  absl::StatusOr<Cursor> cursor() const override;
  absl::StatusOr<std::string> StatsJson() const override;
  absl::StatusOr<std::string> Explain() const override;
  std::vector<BadSample> TakeBadSamples() override;
  void Stop() override;

  // For the next TakeBadSamples: those of a loader that this one has taken over.
  void SetBadSamples(std::vector<BadSample> before);

 private:
  // nullopt: not there in time.
  using Fetched = std::optional<std::optional<DeviceBatch>>;

  void OpenNow(const DeviceOpener& opener);
  absl::StatusOr<Fetched> Fetch(int64_t wait_ms);
  // What `take` gives once it is open; nullopt: not there in time.
  template <typename Value>
  absl::StatusOr<std::optional<Value>> Within(
      int64_t wait_ms, const std::function<absl::StatusOr<Value>(const Interrupted&, AskAt)>& take);
  // nullptr before it is open, and if it could not be opened.
  DeviceSource* source() const;

  const std::shared_ptr<const BatchesOnDevice> common_;
  const Cursor start_;
  std::atomic<bool> stop_{false};
  mutable std::mutex mutex_;
  std::condition_variable opened_;
  std::optional<absl::Status> status_;  // of opening, once that has ended
  std::unique_ptr<DeviceSource> source_;
  // A batch that did not fit into NextInto's target: it comes again.
  std::optional<DeviceBatch> kept_;
  Cursor before_kept_;
  std::vector<BadSample> bad_samples_;  // of before
  std::thread thread_;                  // last, because it uses the others
};

}  // namespace shardpack::api

#endif  // SHARDPACK_API_LOADER_ON_DEVICE_H_

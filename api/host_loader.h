// HostLoader: the AnyLoader whose batches are in host memory, pageable or page-locked. HostBatchOf:
// its batches.
//
//   ASSIGN_OR_RETURN(std::shared_ptr<HostLoader> loader, HostLoader::Open(plan, cursor));
//   HostLoaderParts parts = loader->TakeParts();     // for a DeviceLoader
//
// Lifetime: keeps dataset, order and device; its batches keep their memory and may outlive it.
// Thread-safety: as AnyLoader.
// Errors: those of Loader.
#ifndef SHARDPACK_API_HOST_LOADER_H_
#define SHARDPACK_API_HOST_LOADER_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/any_loader.h"
#include "images/augment/crop.h"
#include "readers/dataset/dataset.h"
#include "readers/loading/host_memory.h"
#include "readers/loading/loader.h"
#include "readers/order/order.h"
#include "readers/order/rank.h"

namespace shardpack::api {

// Everything that is needed to open the loader, again and again.
struct HostLoaderPlan {
  Dataset dataset;
  Order order;
  Rank rank;
  LoaderOptions options;
  Device* device = nullptr;  // null: pageable memory
};

// The memory is destroyed last.
struct HostLoaderParts {
  std::shared_ptr<HostMemory> memory;
  Loader loader;
};

// What determines the crops of decoded images.
struct CropRule {
  CropOptions crop;
  bool orient = true;
  uint64_t seed = 0;
};

// `keeps`: what the bytes of the batch are in.
std::shared_ptr<AnyBatch> HostBatchOf(HostBatch batch, std::shared_ptr<const void> keeps,
                                      const std::optional<CropRule>& rule);

class HostLoader final : public AnyLoader {
 public:
  static absl::StatusOr<std::shared_ptr<HostLoader>> Open(HostLoaderPlan plan,
                                                          const std::optional<Cursor>& cursor);

  absl::StatusOr<Taken> Next(int64_t wait_ms) override;
  absl::Status Seek(uint64_t epoch, uint64_t step) override;
  absl::StatusOr<Cursor> cursor() const override;
  absl::StatusOr<std::string> StatsJson() const override;
  absl::StatusOr<std::string> Explain() const override;
  std::vector<BadSample> TakeBadSamples() override;
  void Stop() override;

  const HostLoaderPlan& plan() const { return plan_; }
  // Afterwards only the destructor may be called.
  std::shared_ptr<HostLoaderParts> TakeParts();

 private:
  explicit HostLoader(HostLoaderPlan plan) : plan_(std::move(plan)) {}
  static absl::StatusOr<std::shared_ptr<HostLoaderParts>> OpenParts(
      const HostLoaderPlan& plan, const std::optional<Cursor>& cursor);
  std::shared_ptr<HostLoaderParts> parts() const;

  const HostLoaderPlan plan_;
  mutable std::mutex mutex_;
  std::shared_ptr<HostLoaderParts> parts_;  // another one after Seek
  bool stopped_ = false;
};

}  // namespace shardpack::api

#endif  // SHARDPACK_API_HOST_LOADER_H_

// HostLoader: the AnyLoader whose batches are in host memory, pageable or page-locked. HostBatchOf:
// its batches.
//
//   ASSIGN_OR_RETURN(std::shared_ptr<HostLoader> loader, HostLoader::Open(plan, cursor));
//   ASSIGN_OR_RETURN(HostLoaderParts parts, loader->TakeParts());     // for a DeviceLoader
//
// Lifetime: keeps dataset, order and device; its batches keep their memory and may outlive it.
// Thread-safety: as AnyLoader.
// Errors: those of Loader; FailedPrecondition once its parts were taken.
#ifndef SHARDPACK_API_HOST_LOADER_H_
#define SHARDPACK_API_HOST_LOADER_H_

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
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

inline constexpr char kTakenOver[] = "a loader on a device has taken this loader over";

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

// What determines the crops and programs of decoded images.
struct CropRule {
  CropOptions crop;
  bool orient = true;
  uint64_t seed = 0;
  std::shared_ptr<const AugmentPlan> augment;  // never null
};

// `keeps`: what the bytes of the batch are in.
std::shared_ptr<AnyBatch> HostBatchOf(HostBatch batch, std::shared_ptr<const void> keeps,
                                      const std::optional<CropRule>& rule);

class HostLoader final : public AnyLoader {
 public:
  static absl::StatusOr<std::shared_ptr<HostLoader>> Open(HostLoaderPlan plan,
                                                          const std::optional<Cursor>& cursor);
  ~HostLoader() override;

  absl::StatusOr<Taken> Next(int64_t wait_ms) override;
  absl::Status Seek(uint64_t epoch, uint64_t step) override;
  absl::StatusOr<Cursor> cursor() const override;
  absl::StatusOr<std::string> StatsJson() const override;
  absl::StatusOr<std::string> Explain() const override;
  std::vector<BadSample> TakeBadSamples() override;
  void Stop() override;

  const HostLoaderPlan& plan() const { return plan_; }
  // As Loader::CursorOf.
  absl::StatusOr<Cursor> CursorOf(const AugmentPlan& plan) const;
  // Waits for calls that other threads are in; FailedPrecondition if one of them is Next.
  absl::StatusOr<HostLoaderParts> TakeParts();

 private:
  // The parts, for the length of a call.
  class Borrowed {
   public:
    Borrowed(const HostLoader& from, bool for_next);
    ~Borrowed();
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;

    absl::Status status() const;
    HostLoaderParts* operator->() const { return parts_.get(); }

   private:
    const HostLoader& from_;
    const bool for_next_;
    std::shared_ptr<HostLoaderParts> parts_;
  };

  explicit HostLoader(HostLoaderPlan plan) : plan_(std::move(plan)) {}
  absl::Status OpenParts(const std::optional<Cursor>& cursor, bool seek,
                         std::shared_ptr<HostLoaderParts>& parts);

  const HostLoaderPlan plan_;
  mutable std::mutex mutex_;
  mutable std::condition_variable returned_;
  mutable uint32_t borrowed_ = 0, borrowed_for_next_ = 0;
  std::shared_ptr<HostLoaderParts> parts_;  // ends in the background; another one after Seek
  std::vector<std::shared_ptr<EndedFlag>> endings_;  // of the parts
  std::vector<BadSample> bad_samples_;               // of the parts before, and not yet taken
  uint64_t bad_before_ = 0;                          // of the parts before, or taken
  bool stopped_ = false;
};

}  // namespace shardpack::api

#endif  // SHARDPACK_API_HOST_LOADER_H_

#include "api/host_loader.h"

#include <utility>

#include "cuda/loading/open_pinned_loader.h"
#include "cuda/loading/pinned_memory.h"
#include "formats/io/status_macros.h"

namespace shardpack::api {
namespace {

std::optional<CropRule> CropRuleOf(const LoaderOptions& options) {
  if (!options.decode) return std::nullopt;
  return CropRule{options.decode->crop, options.decode->orient, options.augment_seed};
}

}  // namespace

absl::StatusOr<std::shared_ptr<HostLoaderParts>> HostLoader::OpenParts(
    const HostLoaderPlan& plan, const std::optional<Cursor>& cursor) {
  const SignalsBlocked blocked;
  if (plan.device == nullptr) {
    auto memory = std::make_shared<PageableMemory>();
    ASSIGN_OR_RETURN(Loader loader, Loader::Open(plan.dataset, plan.order, plan.rank, plan.options,
                                                 *memory, cursor));
    return std::make_shared<HostLoaderParts>(std::move(memory), std::move(loader));
  }
  auto memory = std::make_shared<PinnedMemory>(
      *plan.device, PinnedMemoryOptions{.budget_bytes = plan.options.memory_bytes});
  ASSIGN_OR_RETURN(Loader loader, OpenPinnedLoader(plan.dataset, plan.order, plan.rank,
                                                   plan.options, *memory, cursor));
  return std::make_shared<HostLoaderParts>(std::move(memory), std::move(loader));
}

absl::StatusOr<std::shared_ptr<HostLoader>> HostLoader::Open(HostLoaderPlan plan,
                                                             const std::optional<Cursor>& cursor) {
  std::shared_ptr<HostLoader> loader(new HostLoader(std::move(plan)));
  ASSIGN_OR_RETURN(loader->parts_, OpenParts(loader->plan_, cursor));
  return loader;
}

std::shared_ptr<HostLoaderParts> HostLoader::parts() const {
  const std::lock_guard lock(mutex_);
  return parts_;
}

absl::StatusOr<Taken> HostLoader::Next(int64_t wait_ms) {
  const std::shared_ptr<HostLoaderParts> parts = this->parts();
  absl::StatusOr<std::optional<HostBatch>> batch =
      wait_ms < 0 ? parts->loader.Next()
                  : parts->loader.NextWithin(EndedFlag::LimitedWait(wait_ms));
  if (absl::IsDeadlineExceeded(batch.status())) return Taken{SHARDPACK_WAIT, nullptr};
  if (!batch.ok()) return batch.status();
  if (!*batch) return Taken{SHARDPACK_END, nullptr};
  return Taken{SHARDPACK_OK,
               HostBatchOf(**std::move(batch), parts->memory, CropRuleOf(plan_.options))};
}

absl::Status HostLoader::Seek(uint64_t epoch, uint64_t step) {
  const Cursor cursor = MakeCursor(plan_.dataset.identity(), plan_.order, epoch, step);
  RETURN_IF_ERROR(CheckCursor(cursor, plan_.dataset.identity(), plan_.order));
  ASSIGN_OR_RETURN(std::shared_ptr<HostLoaderParts> opened, OpenParts(plan_, cursor));
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) opened->loader.Stop();
    opened.swap(parts_);
  }
  opened->loader.Stop();
  (void)EndInBackground(std::move(opened));
  return absl::OkStatus();
}

absl::StatusOr<Cursor> HostLoader::cursor() const { return parts()->loader.cursor(); }
absl::StatusOr<std::string> HostLoader::StatsJson() const {
  return parts()->loader.stats().ToJson();
}
absl::StatusOr<std::string> HostLoader::Explain() const {
  return parts()->loader.stats().Explain();
}
std::vector<BadSample> HostLoader::TakeBadSamples() { return parts()->loader.TakeBadSamples(); }

void HostLoader::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  if (parts_ != nullptr) parts_->loader.Stop();
}

std::shared_ptr<HostLoaderParts> HostLoader::TakeParts() {
  const std::lock_guard lock(mutex_);
  return std::move(parts_);
}

}  // namespace shardpack::api

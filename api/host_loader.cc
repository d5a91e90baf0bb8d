#include "api/host_loader.h"

#include <algorithm>
#include <utility>

#include "cuda/loading/open_pinned_loader.h"
#include "cuda/loading/pinned_memory.h"
#include "formats/io/status_macros.h"

namespace shardpack::api {
namespace {

std::optional<CropRule> CropRuleOf(const LoaderOptions& options) {
  if (!options.decode) return std::nullopt;
  return CropRule{options.decode->crop, options.decode->orient, options.augment_seed,
                  std::make_shared<const AugmentPlan>(options.augment)};
}

absl::StatusOr<HostLoaderParts> OpenPlan(const HostLoaderPlan& plan, const LoaderOptions& options,
                                         const std::optional<Cursor>& cursor) {
  const SignalsBlocked blocked;
  if (plan.device == nullptr) {
    auto memory = std::make_shared<PageableMemory>();
    ASSIGN_OR_RETURN(Loader loader,
                     Loader::Open(plan.dataset, plan.order, plan.rank, options, *memory, cursor));
    return HostLoaderParts{std::move(memory), std::move(loader)};
  }
  // What it cannot page-lock is in the statistics of the loader on the device.
  auto memory = std::make_shared<PinnedMemory>(
      *plan.device,
      PinnedMemoryOptions{.budget_bytes = options.memory_bytes, .log = [](const std::string&) {}});
  ASSIGN_OR_RETURN(Loader loader,
                   OpenPinnedLoader(plan.dataset, plan.order, plan.rank, options, *memory, cursor));
  return HostLoaderParts{std::move(memory), std::move(loader)};
}

}  // namespace

HostLoader::Borrowed::Borrowed(const HostLoader& from, bool for_next)
    : from_(from), for_next_(for_next) {
  const std::lock_guard lock(from_.mutex_);
  parts_ = from_.parts_;
  ++from_.borrowed_;
  if (for_next_) ++from_.borrowed_for_next_;
}

HostLoader::Borrowed::~Borrowed() {
  parts_ = nullptr;
  const std::lock_guard lock(from_.mutex_);
  --from_.borrowed_;
  if (for_next_) --from_.borrowed_for_next_;
  from_.returned_.notify_all();
}

absl::Status HostLoader::Borrowed::status() const {
  if (parts_ != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(kTakenOver);
}

absl::Status HostLoader::OpenParts(const std::optional<Cursor>& cursor, bool seek,
                                   std::shared_ptr<HostLoaderParts>& parts) {
  LoaderOptions options = plan_.options;
  // A place to seek says nothing about augmentation.
  if (seek) options.other_augment = true;
  {
    const std::lock_guard lock(mutex_);
    options.max_bad_samples -= std::min(options.max_bad_samples, bad_before_);
  }
  ASSIGN_OR_RETURN(HostLoaderParts opened, OpenPlan(plan_, options, cursor));
  std::erase_if(endings_, [](const auto& ended) { return ended->Wait(0); });
  const auto ended = std::make_shared<EndedFlag>();
  parts = EndingInBackground(std::make_shared<HostLoaderParts>(std::move(opened)), ended);
  endings_.push_back(ended);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<HostLoader>> HostLoader::Open(HostLoaderPlan plan,
                                                             const std::optional<Cursor>& cursor) {
  std::shared_ptr<HostLoader> loader(new HostLoader(std::move(plan)));
  RETURN_IF_ERROR(loader->OpenParts(cursor, /*seek=*/false, loader->parts_));
  return loader;
}

// Once it has ended, so have all threads.
HostLoader::~HostLoader() {
  parts_ = nullptr;
  for (const std::shared_ptr<EndedFlag>& ended : endings_) ended->Wait(-1);
}

absl::StatusOr<Taken> HostLoader::Next(int64_t wait_ms) {
  const Borrowed parts(*this, /*for_next=*/true);
  RETURN_IF_ERROR(parts.status());
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
  // Here, where no cursor was given that a message could speak of.
  if (step > plan_.order.steps()) {
    return absl::InvalidArgumentError(
        absl::StrCat("step ", step, " is beyond the ", plan_.order.steps(), " steps of an epoch"));
  }
  const Cursor cursor = MakeCursor(plan_.dataset.identity(), plan_.order, epoch, step);
  const Borrowed before(*this, /*for_next=*/true);
  RETURN_IF_ERROR(before.status());
  {
    // No batch comes meanwhile, so the report of those that came is complete.
    const std::lock_guard lock(mutex_);
    for (BadSample& bad : before->loader.TakeBadSamples()) {
      bad_samples_.push_back(std::move(bad));
      ++bad_before_;
    }
  }
  std::shared_ptr<HostLoaderParts> parts;
  RETURN_IF_ERROR(OpenParts(cursor, /*seek=*/true, parts));
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) parts->loader.Stop();
    parts_.swap(parts);
  }
  before->loader.Stop();
  return absl::OkStatus();
}

absl::StatusOr<Cursor> HostLoader::cursor() const {
  const Borrowed parts(*this, /*for_next=*/false);
  RETURN_IF_ERROR(parts.status());
  return parts->loader.cursor();
}

absl::StatusOr<Cursor> HostLoader::CursorOf(const AugmentPlan& plan) const {
  const Borrowed parts(*this, /*for_next=*/false);
  RETURN_IF_ERROR(parts.status());
  return parts->loader.CursorOf(plan);
}

absl::StatusOr<std::string> HostLoader::StatsJson() const {
  const Borrowed parts(*this, /*for_next=*/false);
  RETURN_IF_ERROR(parts.status());
  return parts->loader.stats().ToJson();
}

absl::StatusOr<std::string> HostLoader::Explain() const {
  const Borrowed parts(*this, /*for_next=*/false);
  RETURN_IF_ERROR(parts.status());
  return parts->loader.stats().Explain();
}

std::vector<BadSample> HostLoader::TakeBadSamples() {
  const std::lock_guard lock(mutex_);
  std::vector<BadSample> taken = std::exchange(bad_samples_, {});
  if (parts_ == nullptr) return taken;
  for (BadSample& bad : parts_->loader.TakeBadSamples()) {
    taken.push_back(std::move(bad));
    ++bad_before_;
  }
  return taken;
}

void HostLoader::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  if (parts_ != nullptr) parts_->loader.Stop();
}

absl::StatusOr<HostLoaderParts> HostLoader::TakeParts() {
  std::unique_lock lock(mutex_);
  if (parts_ == nullptr) return absl::FailedPreconditionError(kTakenOver);
  if (borrowed_for_next_ > 0)
    return absl::FailedPreconditionError("another thread waits for a batch of this loader");
  const std::shared_ptr<HostLoaderParts> parts = std::exchange(parts_, nullptr);
  returned_.wait(lock, [this] { return borrowed_ == 0; });
  return std::move(*parts);
}

}  // namespace shardpack::api

#include "converters/publishing/plan_copy.h"

#include <sys/stat.h>

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "converters/publishing/pack_names.h"
#include "formats/io/escape.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

// Between two looks whether another worker was faster.
constexpr std::chrono::milliseconds kRivalPeriod{200};

absl::Status CheckCopy(const Plan& plan, const std::string& path,
                       const std::function<absl::Status()>& may_go_on) {
  ASSIGN_OR_RETURN(PlanFile file, MapPlan(path));
  const absl::StatusOr<Plan> copied =
      Plan::Open(std::move(file), [&](std::string_view) { return &plan.format(); });
  absl::Status status = copied.status();
  if (status.ok()) status = copied->CheckAllSlices(may_go_on);
  if (status.ok() && copied->digest() == plan.digest()) return status;
  if (!status.ok() && !absl::IsDataLoss(status)) return status;
  RETURN_IF_ERROR(plan.CheckAllSlices(may_go_on));  // names the file, and the shard
  const std::string from = plan.slices() == nullptr ? "" : plan.slices()->file().path;
  return absl::DataLossError(absl::StrCat(from.empty() ? "the plan" : EscapeForTerminal(from),
                                          " changed while it was copied; run again"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<StagedFile>> StagePlan(
    const Plan& plan, const RunStage& stage, std::string_view name,
    const std::function<absl::Status()>& may_go_on) {
  ASSIGN_OR_RETURN(std::unique_ptr<StagedFile> staged, stage.Stage(name));
  RETURN_IF_ERROR(plan.WriteTo([&](std::string_view part) {
    const absl::Status status = may_go_on();
    return status.ok() ? staged->Append(AsBytes(part)) : status;
  }));
  RETURN_IF_ERROR(staged->Flush());
  RETURN_IF_ERROR(CheckCopy(plan, staged->path(), may_go_on));
  return staged;
}

PlanCopy::PlanCopy(const Plan& plan, const OutputOptions& options, const RunStage& stage,
                   const OwnedFolder& dataset, Begin begin)
    : plan_(plan),
      options_(options),
      stage_(stage),
      dataset_(dataset),
      path_(dataset.PathOf(kPlanName)),
      was_there_(There()),
      copied_(std::async(begin == Begin::kNow ? std::launch::async : std::launch::deferred, [this] {
                return Copy();
              }).share()) {}

PlanCopy::~PlanCopy() {
  stop_ = true;
  copied_.wait();
}

// 0: nothing can be seen there.
ino_t PlanCopy::There() const {
  struct stat facts;
  return ::lstat(path_.c_str(), &facts) == 0 ? facts.st_ino : 0;
}

absl::Status PlanCopy::MayGoOn() {
  if (stop_ || options_.stopped()) return absl::CancelledError("stopped by a signal");
  const auto now = std::chrono::steady_clock::now();
  if (now < next_look_) return absl::OkStatus();
  next_look_ = now + kRivalPeriod;
  const ino_t there = There();
  if (there == 0 || there == was_there_) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat(EscapeForTerminal(path_), " was replaced by another run just now"));
}

absl::Status PlanCopy::Copy() {
  RETURN_IF_ERROR(MayGoOn());
  ASSIGN_OR_RETURN(const std::unique_ptr<StagedFile> staged,
                   StagePlan(plan_, stage_, kPlanOfTheRun, [this] { return MayGoOn(); }));
  RETURN_IF_ERROR(MayGoOn());
  if (options_.fsync) RETURN_IF_ERROR(staged->SyncData());
  RETURN_IF_ERROR(dataset_.Replace(stage_.NameOf(kPlanOfTheRun), kPlanName));
  return options_.fsync ? SyncDirectory(dataset_.PathOf(kPackFolder)) : absl::OkStatus();
}

absl::Status PlanCopy::Wait() {
  const absl::Status copied = copied_.get();
  if (!copied.ok() && !absl::IsCancelled(copied) && !whole_) whole_ = IsWhole();
  return whole_ ? absl::OkStatus() : copied;
}

bool PlanCopy::IsWhole() const {
  absl::StatusOr<PlanFile> file = MapPlan(path_);
  if (!file.ok()) return false;
  const absl::StatusOr<Plan> there =
      Plan::Open(*std::move(file), [this](std::string_view) { return &plan_.format(); });
  return there.ok() && there->digest() == plan_.digest() && there->HasRows();
}

}  // namespace shardpack

#include "converters/publishing/plan_copy.h"

#include <sys/stat.h>

#include <memory>
#include <string_view>
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

}  // namespace

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
  ASSIGN_OR_RETURN(const std::unique_ptr<StagedFile> staged, stage_.Stage(kPlanOfTheRun));
  RETURN_IF_ERROR(plan_.WriteTo([&](std::string_view part) {
    const absl::Status status = MayGoOn();
    return status.ok() ? staged->Append(AsBytes(part)) : status;
  }));
  RETURN_IF_ERROR(staged->Flush());
  RETURN_IF_ERROR(Check(*staged));  // nobody else shall have a damaged one
  RETURN_IF_ERROR(MayGoOn());
  if (options_.fsync) RETURN_IF_ERROR(staged->SyncData());
  RETURN_IF_ERROR(dataset_.Replace(stage_.NameOf(kPlanOfTheRun), kPlanName));
  return options_.fsync ? SyncDirectory(dataset_.PathOf(kPackFolder)) : absl::OkStatus();
}

absl::Status PlanCopy::Check(const StagedFile& copy) {
  ASSIGN_OR_RETURN(PlanFile file, MapPlan(copy.path()));
  const absl::StatusOr<Plan> copied =
      Plan::Open(std::move(file), [this](std::string_view) { return &plan_.format(); });
  const auto may_go_on = [this] { return MayGoOn(); };
  absl::Status status = copied.status();
  if (status.ok()) status = copied->CheckAllSlices(may_go_on);
  if (status.ok() && copied->digest() == plan_.digest()) return status;
  if (!status.ok() && !absl::IsDataLoss(status)) return status;
  RETURN_IF_ERROR(plan_.CheckAllSlices(may_go_on));  // names the file, and the shard
  const std::string& path = plan_.slices()->file().path;
  return absl::DataLossError(absl::StrCat(path.empty() ? "the plan" : EscapeForTerminal(path),
                                          " changed while it was copied; run again"));
}

}  // namespace shardpack

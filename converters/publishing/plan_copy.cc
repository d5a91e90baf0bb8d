#include "converters/publishing/plan_copy.h"

#include <memory>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/io/escape.h"
#include "formats/io/exists.h"
#include "formats/io/staged_file.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr std::string_view kStagedPlan = "plan-of-the-run";

}  // namespace

PlanCopy::PlanCopy(const Plan& plan, const OutputOptions& options, const RunStage& stage,
                   std::string path)
    : plan_(plan), options_(options), stage_(stage), path_(std::move(path)) {
  copied_ = std::async(std::launch::async, [this] { return Copy(); });
}

PlanCopy::~PlanCopy() {
  stop_ = true;
  if (copied_.valid()) copied_.wait();
}

absl::Status PlanCopy::End(const std::function<absl::Status(const absl::Status& copied)>& judge) {
  const std::lock_guard lock(mutex_);
  if (!outcome_) outcome_ = judge(copied_.get());
  return *outcome_;
}

absl::Status PlanCopy::MayGoOn() const {
  if (stop_ || options_.stopped()) return absl::CancelledError("stopped by a signal");
  ASSIGN_OR_RETURN(const bool there, Exists(path_));
  if (!there) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat(EscapeForTerminal(path_), " is there"));
}

absl::Status PlanCopy::Copy() const {
  // Nobody else shall have a damaged one.
  RETURN_IF_ERROR(plan_.CheckAllSlices([this] { return MayGoOn(); }));
  ASSIGN_OR_RETURN(const std::unique_ptr<StagedFile> staged, stage_.Stage(kStagedPlan));
  RETURN_IF_ERROR(plan_.WriteTo([&](std::string_view part) {
    const absl::Status status = MayGoOn();
    return status.ok() ? staged->Append(AsBytes(part)) : status;
  }));
  RETURN_IF_ERROR(options_.fsync ? staged->SyncData() : staged->Flush());
  return staged->Link(path_);
}

}  // namespace shardpack

// PlanCopy: checks a large plan and copies it into a dataset's `.pack` while its first shards are
// built.
//
//   PlanCopy copy(plan, options, *stage, "OUT/.pack/plan");
//   copy.End([&](const absl::Status& copied) { return ...; });  // before the first shard is published
//
// Lifetime: plan, stage and the options' `stop` must outlive it; the destructor ends a copy that is
// under way.
// Thread-safety: End from any thread.
// Errors: DataLoss when the plan is damaged; AlreadyExists when another run's plan is there;
// Cancelled; I/O Status.
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_PLAN_COPY_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_PLAN_COPY_H_

#include <atomic>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "converters/planning/output_options.h"
#include "converters/planning/plan.h"
#include "converters/publishing/run_stage.h"

namespace shardpack {

class PlanCopy {
 public:
  PlanCopy(const Plan& plan, const OutputOptions& options, const RunStage& stage, std::string path);
  ~PlanCopy();
  PlanCopy(const PlanCopy&) = delete;
  PlanCopy& operator=(const PlanCopy&) = delete;

  const Plan& plan() const { return plan_; }
  // Waits for the copy; the first caller then makes of its outcome what it and all later ones
  // return.
  absl::Status End(const std::function<absl::Status(const absl::Status& copied)>& judge);

 private:
  absl::Status Copy() const;
  absl::Status MayGoOn() const;

  const Plan& plan_;
  const OutputOptions options_;
  const RunStage& stage_;
  const std::string path_;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::future<absl::Status> copied_;
  std::optional<absl::Status> outcome_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_PLAN_COPY_H_

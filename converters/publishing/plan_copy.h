// PlanCopy: copies a large plan into a dataset's `.pack` while the first shards are built, and
// checks the copy before it takes its place.
//
//   PlanCopy copy(plan, options, *stage, *folder, PlanCopy::Begin::kNow);
//   absl::Status copied = copy.Wait();  // before the first shard is published
//
// Lifetime: all arguments and the options' `stop` must outlive it; the destructor ends a copy that
// is under way.
// Thread-safety: Wait from any thread.
// Errors: DataLoss when the plan is damaged, or changes meanwhile; AlreadyExists when another run
// has replaced what is there; Cancelled; I/O Status.
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_PLAN_COPY_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_PLAN_COPY_H_

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "converters/planning/output_options.h"
#include "converters/planning/plan.h"
#include "converters/publishing/owned_folder.h"
#include "converters/publishing/run_stage.h"
#include "formats/io/staged_file.h"

namespace shardpack {

// A copy of the plan in the staging area, checked after it was written: nobody else shall have a
// damaged one. Asks `may_go_on` now and then, and ends with its error.
absl::StatusOr<std::unique_ptr<StagedFile>> StagePlan(
    const Plan& plan, const RunStage& stage, std::string_view name,
    const std::function<absl::Status()>& may_go_on);

class PlanCopy {
 public:
  enum class Begin { kNow, kWithWait };

  PlanCopy(const Plan& plan, const OutputOptions& options, const RunStage& stage,
           const OwnedFolder& dataset, Begin begin);
  ~PlanCopy();
  PlanCopy(const PlanCopy&) = delete;
  PlanCopy& operator=(const PlanCopy&) = delete;

  // Until the dataset holds the whole plan, of this run or of another that was faster. Makes the
  // copy, where it was not begun.
  absl::Status Wait();

 private:
  absl::Status Copy();
  absl::Status MayGoOn();
  ino_t There() const;
  bool IsWhole() const;

  const Plan& plan_;
  const OutputOptions options_;
  const RunStage& stage_;
  const OwnedFolder& dataset_;
  const std::string path_;
  const ino_t was_there_;
  std::chrono::steady_clock::time_point next_look_;
  std::atomic<bool> stop_ = false, whole_ = false;
  std::shared_future<absl::Status> copied_;  // uses all of the above
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_PLAN_COPY_H_

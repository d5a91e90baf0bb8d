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
#include <future>
#include <string>

#include "absl/status/status.h"
#include "converters/planning/output_options.h"
#include "converters/planning/plan.h"
#include "converters/publishing/owned_folder.h"
#include "converters/publishing/run_stage.h"
#include "formats/io/staged_file.h"

namespace shardpack {

class PlanCopy {
 public:
  enum class Begin { kNow, kWithWait };

  PlanCopy(const Plan& plan, const OutputOptions& options, const RunStage& stage,
           const OwnedFolder& dataset, Begin begin);
  ~PlanCopy();
  PlanCopy(const PlanCopy&) = delete;
  PlanCopy& operator=(const PlanCopy&) = delete;

  const Plan& plan() const { return plan_; }
  // What the copy came to. Does it, where it was not begun.
  absl::Status Wait() const { return copied_.get(); }

 private:
  absl::Status Copy();
  absl::Status Check(const StagedFile& copy);
  absl::Status MayGoOn();
  ino_t There() const;

  const Plan& plan_;
  const OutputOptions options_;
  const RunStage& stage_;
  const OwnedFolder& dataset_;
  const std::string path_;
  const ino_t was_there_;
  std::chrono::steady_clock::time_point next_look_;
  std::atomic<bool> stop_ = false;
  std::shared_future<absl::Status> copied_;  // uses all of the above
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_PLAN_COPY_H_

// PublishedPlan: the plan in a dataset's `.pack`, which every run that builds there must share.
//
//   PublishedPlan published(plan, options, *stage, *folder);
//   absl::StatusOr<std::optional<Plan>> was = published.Publish();  // what an earlier run began with
//   absl::Status whole = published.AwaitWhole();                    // before a shard is published
//
// Lifetime: all arguments, and the options' `stop`, must outlive it.
// Thread-safety: AwaitWhole from any thread.
// Errors: FailedPrecondition (exit 5) when the folder is of another plan, or inputs changed since;
// DataLoss (exit 4) when the plan is damaged; I/O Status.
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_PUBLISHED_PLAN_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_PUBLISHED_PLAN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "converters/planning/output_options.h"
#include "converters/planning/plan.h"
#include "converters/publishing/finished_shards.h"
#include "converters/publishing/owned_folder.h"
#include "converters/publishing/plan_copy.h"
#include "converters/publishing/run_stage.h"
#include "formats/io/staged_file.h"

namespace shardpack {

// FailedPrecondition: `out` was made with another plan.
absl::Status PlanDiffers(const std::string& out, const std::vector<std::string>& differences);
// Adds advice when another plan is in the way.
absl::Status OrOverwrite(const absl::Status& status, const OutputOptions& options);

class PublishedPlan {
 public:
  PublishedPlan(const Plan& plan, const OutputOptions& options, const RunStage& stage,
                const OwnedFolder& folder)
      : plan_(plan), options_(options), stage_(stage), folder_(folder) {}

  // Publishes the plan, a large one without its rows at first, and the names of all that a build of
  // it makes. A plan that was published before must be the same; it is returned.
  absl::StatusOr<std::optional<Plan>> Publish();
  // Whether Publish found the folder without a plan, or with a damaged one.
  bool was_lost() const { return was_lost_; }
  // Of the copy that this run may still have to write.
  uint64_t bytes_to_copy() const;
  // Until the folder holds the whole plan.
  absl::Status AwaitWhole() const;

  // Whether the inputs of the wanted shards have the file times with which the build was begun.
  absl::Status CheckFreshness(const Plan& was, std::span<const uint32_t> wanted,
                              const FinishedShards& finished) const;
  // From here on the published plan has today's file times, which a commit records in the manifest.
  absl::Status Renew(const Plan& was, const FinishedShards& finished) const;

 private:
  absl::Status PublishNew();
  absl::StatusOr<Plan> OpenTheirs(const PlanFile& file) const;
  bool IsCopiedMeanwhile() const;
  void BeginCopy(PlanCopy::Begin begin);
  absl::Status CheckJournals();
  absl::Status ClaimNames() const;
  absl::StatusOr<std::unique_ptr<StagedFile>> StageWhole() const;
  absl::StatusOr<std::unique_ptr<StagedFile>> StageWithoutRows() const;
  absl::Status Replace() const;

  const Plan& plan_;
  const OutputOptions options_;
  const RunStage& stage_;
  const OwnedFolder& folder_;
  bool was_lost_ = false;
  std::unique_ptr<PlanCopy> copy_;  // uses the folder and the stage
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_PUBLISHED_PLAN_H_

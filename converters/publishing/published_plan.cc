#include "converters/publishing/published_plan.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "converters/listing/offered_flags.h"
#include "converters/publishing/conflict.h"
#include "converters/publishing/journal.h"
#include "converters/publishing/pack_names.h"
#include "converters/publishing/replacement.h"
#include "converters/publishing/shard_results.h"
#include "converters/publishing/staged_writes.h"
#include "formats/core/index_name.h"
#include "formats/io/escape.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

// Up to this, everybody reads and checks a plan as a whole, before anything else.
constexpr uint64_t kSmallPlanBytes = uint64_t{16} << 20;

// Every name that a build of the plan may give a file, except those that a commit adds.
std::string MadeNames(const Plan& plan) {
  std::set<std::string> names;
  for (size_t n = 0; n < plan.shards().size(); ++n) {
    const std::string& name = plan.shards()[n].name;
    names.insert({plan.DataFile(n), IndexName(name), LongIndexName(name)});
  }
  names.insert(std::string(kManifestName));
  return NamesText(names);
}

}  // namespace

absl::Status PlanDiffers(const std::string& out, const std::vector<std::string>& differences) {
  return Conflict(
      out, absl::StrCat("was made with another plan:\n  ", absl::StrJoin(differences, "\n  ")));
}

// A worker's part cannot replace what the others build.
absl::Status OrOverwrite(const absl::Status& status, const OutputOptions& options) {
  const std::string text(status.message());
  if (options.worker || options.only_commit) {
    return absl::Status(
        status.code(),
        absl::StrCat(text, "\nUse the plan that the other workers have, or another folder."));
  }
  return OfferFlags(
      absl::Status(status.code(),
                   absl::StrCat(text, "\nUse another folder, or replace what is there")),
      {{"--overwrite"}});
}

absl::StatusOr<std::optional<Plan>> PublishedPlan::Publish() {
  const std::string path = folder_.PathOf(kPlanName);
  absl::StatusOr<PlanFile> file = MapPlan(path);
  if (absl::IsNotFound(file.status())) {
    const absl::Status status = PublishNew();
    if (status.ok()) RETURN_IF_ERROR(ClaimNames());
    if (status.ok()) return std::nullopt;
    if (!absl::IsAlreadyExists(status)) return status;
    file = MapPlan(path);  // another worker was first
  }
  if (!file.ok()) return file.status();
  absl::StatusOr<Plan> theirs = OpenTheirs(*file);
  if (absl::IsDataLoss(theirs.status())) {  // the journals know the plan of their shards
    RETURN_IF_ERROR(CheckJournals());
    RETURN_IF_ERROR(Replace());
    RETURN_IF_ERROR(ClaimNames());
    return std::nullopt;
  }
  if (!theirs.ok()) return theirs.status();
  // The first run is still doing it, or has ended.
  if (IsCopiedMeanwhile() && !theirs->HasRows()) BeginCopy(PlanCopy::Begin::kWithWait);
  RETURN_IF_ERROR(ClaimNames());
  return std::optional<Plan>(*std::move(theirs));
}

// Who begins here with another plan is told at once, also while a large one is copied.
absl::Status PublishedPlan::PublishNew() {
  RETURN_IF_ERROR(CheckJournals());
  const bool meanwhile = IsCopiedMeanwhile();
  {
    ASSIGN_OR_RETURN(const std::unique_ptr<StagedFile> staged,
                     meanwhile ? StageWithoutRows() : StageWhole());
    RETURN_IF_ERROR(Place(*staged, folder_.PathOf(kPlanName), options_.shares()));
  }
  if (options_.fsync) RETURN_IF_ERROR(SyncDirectory(folder_.PathOf(kPackFolder)));
  if (meanwhile) BeginCopy(PlanCopy::Begin::kNow);
  return absl::OkStatus();
}

bool PublishedPlan::IsCopiedMeanwhile() const {
  return options_.shares() && !options_.only_commit && plan_.slices() != nullptr &&
         plan_.slices()->file().bytes.size() > kSmallPlanBytes;
}

void PublishedPlan::BeginCopy(PlanCopy::Begin begin) {
  copy_ = std::make_unique<PlanCopy>(plan_, options_, stage_, folder_, begin);
}

uint64_t PublishedPlan::bytes_to_copy() const {
  return copy_ == nullptr ? 0 : plan_.slices()->file().bytes.size();
}

absl::Status PublishedPlan::AwaitWhole() const {
  return copy_ == nullptr ? absl::OkStatus() : copy_->Wait();
}

// The plan that is there, if it is this one; DataLoss when it is damaged.
absl::StatusOr<Plan> PublishedPlan::OpenTheirs(const PlanFile& file) const {
  std::string other_format;
  absl::StatusOr<Plan> theirs = Plan::Open(file, [&](std::string_view name) {
    if (name != plan_.format().name) other_format = name;
    return other_format.empty() ? &plan_.format() : nullptr;
  });
  // A worker that reads a large one leaves what others build from to them.
  const bool reads_all = !options_.worker || file.bytes.size() <= kSmallPlanBytes;
  if (theirs.ok() && reads_all && !options_.only_commit) RETURN_IF_ERROR(theirs->CheckAllSlices());
  if (absl::IsDataLoss(theirs.status())) return theirs;
  if (!other_format.empty()) {
    return OrOverwrite(
        PlanDiffers(folder_.path(), {absl::StrCat("--format was ", EscapeForTerminal(other_format),
                                                  ", is ", std::string(plan_.format().name))}),
        options_);
  }
  if (!theirs.ok()) {
    return OrOverwrite(
        Conflict(folder_.path(), absl::StrCat("holds an unfinished build that cannot be resumed: ",
                                              std::string(theirs.status().message()))),
        options_);
  }
  if (theirs->digest() != plan_.digest())
    return OrOverwrite(PlanDiffers(folder_.path(), Plan::Differences(*theirs, plan_)), options_);
  return theirs;
}

// Before a lost plan is replaced: the new plan must not take shards of another plan for its own.
absl::Status PublishedPlan::CheckJournals() {
  ASSIGN_OR_RETURN(const std::vector<ShardResult> lines, ReadJournals(folder_.PathOf(kPackFolder)));
  was_lost_ = true;
  return CheckOnePlan(folder_.path(), plan_.digest(), lines);
}

// Written after the plan, so the names always belong to the existing plan.
absl::Status PublishedPlan::ClaimNames() const {
  const std::string names = MadeNames(plan_);
  ASSIGN_OR_RETURN(const std::set<std::string> was, ReadNames(folder_.PathOf(kMadeName)));
  return NamesText(was) == names ? absl::OkStatus()
                                 : ReplaceInPack(folder_, stage_, kMadeName, names, options_.fsync);
}

// A copy, also of a large one: a second name of a user's file would change with it.
absl::StatusOr<std::unique_ptr<StagedFile>> PublishedPlan::StageWhole() const {
  ASSIGN_OR_RETURN(std::unique_ptr<StagedFile> staged,
                   StagePlan(plan_, stage_, kOfTheRun, absl::OkStatus));
  if (options_.fsync) RETURN_IF_ERROR(staged->SyncData());
  return staged;
}

absl::StatusOr<std::unique_ptr<StagedFile>> PublishedPlan::StageWithoutRows() const {
  ASSIGN_OR_RETURN(std::unique_ptr<StagedFile> staged, stage_.Stage(kOfTheRun));
  RETURN_IF_ERROR(plan_.WriteWithoutRowsTo(*staged));
  RETURN_IF_ERROR(options_.fsync ? staged->SyncData() : staged->Flush());
  return staged;
}

absl::Status PublishedPlan::Replace() const {
  RETURN_IF_ERROR(CheckOursInPack(folder_, kPlanName));
  ASSIGN_OR_RETURN(const std::unique_ptr<StagedFile> staged, StageWhole());
  return folder_.Replace(stage_.NameOf(kOfTheRun), kPlanName);
}

// Sizes are part of the digest; a file rewritten with the same size shows in its mtime. Finished
// shards are built again from such files. A worker cannot know which of two plans the others have.
absl::Status PublishedPlan::CheckFreshness(const Plan& was, std::span<const uint32_t> wanted,
                                           const FinishedShards& finished) const {
  for (const uint32_t n : wanted) {
    if (!options_.worker && finished.WasJournalled(n)) continue;
    if (was.ShardTimes(n) != plan_.ShardTimes(n) && !was.HasRows()) {
      return OrOverwrite(
          Conflict(folder_.path(),
                   absl::StrCat("was begun with a plan of other file times (shard ", n, ")")),
          options_);
    }
    ASSIGN_OR_RETURN(const std::optional<uint32_t> row, FirstChangedRow(was, plan_, n));
    if (row) {
      return OrOverwrite(
          Conflict(plan_.listing().Path(*row), "was changed since the interrupted run began"),
          options_);
    }
  }
  return absl::OkStatus();
}

// No line of an older version, which has no times, may claim that a shard was built from them.
absl::Status PublishedPlan::Renew(const Plan& was, const FinishedShards& finished) const {
  if (options_.worker || options_.only_commit) return absl::OkStatus();
  bool differ = false;
  std::set<uint32_t> done;
  for (const ShardResult& result : finished.results()) done.insert(result.shard);
  for (size_t n = 0; n < plan_.shards().size(); ++n) {
    if (was.ShardTimes(n) == plan_.ShardTimes(n)) continue;
    differ = true;
    const auto shard = static_cast<uint32_t>(n);
    if (!finished.WasJournalled(shard) || done.contains(shard)) continue;
    RETURN_IF_ERROR(folder_.RemoveFile(IndexName(plan_.shards()[n].name)));
  }
  return differ ? Replace() : absl::OkStatus();
}

}  // namespace shardpack

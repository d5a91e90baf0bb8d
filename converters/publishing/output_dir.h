// OutputDir: the folder that a dataset is built in: its lock, its plan, its staging area, and what
// is already done.
//
//   absl::StatusOr<OutputDir> out = OutputDir::Open("OUT", plan, OutputOptions{}, pool);
//   if (out->complete()) ...                                    // a manifest of the same plan is there, looked at
//   const std::vector<ShardResult>& kept = out->finished();     // verified shards of earlier and other runs
//
// The steps and their order are those of docs/integrity.md. Workers (shards_range) share an OUT
// without a lock: each has a stage and a journal of its own, the plan is published once, and what
// one has published the others keep.
//
// Lifetime: holds the lock until destroyed.
// Thread-safety: const from any thread.
// Errors: InvalidArgument (exit 2) for an OUT that cannot be one; DataLoss (exit 4) for a finished
// dataset that is damaged; FailedPrecondition (exit 5) when OUT belongs to something else, is
// locked, holds shards of another plan, or inputs changed since; I/O Status (exit 6).
// Units: bytes.
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_OUTPUT_DIR_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_OUTPUT_DIR_H_

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "converters/planning/output_options.h"
#include "converters/planning/plan.h"
#include "converters/publishing/journal.h"
#include "converters/publishing/owned_folder.h"
#include "converters/publishing/run_stage.h"
#include "converters/threads/io_pool.h"
#include "formats/io/staged_file.h"

namespace shardpack {

// Ok when the plan has the shards of the range, if one is given; InvalidArgument that says which it
// has.
absl::Status CheckShardsRange(const Plan& plan, const OutputOptions& options);

class OutputDir {
 public:
  // Opens or creates OUT for this plan and verifies what other runs have left (on `pool`).
  static absl::StatusOr<OutputDir> Open(const std::string& out, const Plan& plan,
                                        const OutputOptions& options, IoPool& pool);
  // The plan that OUT/.pack holds, for `pack commit`.
  static absl::StatusOr<std::string> ReadPlanBytes(const std::string& out);
  // The error of one that is damaged, with the way on.
  static absl::Status DamagedPlan(const std::string& out, const absl::Status& why);
  // The same of a manifest; other errors as they are.
  static absl::Status DamagedManifest(const std::string& out, const absl::Status& why);
  // Whether a run that was interrupted can be gone on with in OUT.
  static bool HoldsUnfinished(const std::string& out);
  // Where --overwrite builds what is to take the place of OUT, and then leaves the old one until it
  // is removed.
  static std::string BesideOf(const std::string& out);
  // Ends what a run that published this manifest had no time for: takes an old dataset and `.pack`
  // away. Where `.pack` holds nothing of pack, nothing is written. Answers what the user has to be
  // told, if anything: what lies where the old dataset was, and is another one, stays.
  static absl::StatusOr<std::string> FinishPublished(const std::string& out);

  OutputDir(OutputDir&&) = default;
  OutputDir& operator=(OutputDir&&) = default;

  // Where the files go: OUT, or the folder beside it with --overwrite.
  const std::string& path() const { return path_; }
  const OutputOptions& options() const { return options_; }
  bool complete() const { return complete_; }
  // The files go, or went, to a folder beside OUT, which no other run works in.
  bool replaces() const { return path_ != out_; }
  // See FinishPublished.
  const std::string& notice() const { return notice_; }
  const std::vector<ShardResult>& finished() const { return finished_; }
  Journal& journal() const { return *journal_; }

  std::string PathOf(std::string_view name) const { return path_ + "/" + std::string(name); }
  // A folder of this run alone, for what is not yet published.
  std::string StageFolder() const { return stage_->PathOf(""); }
  // A new file there; what a try that failed has left is removed.
  absl::StatusOr<std::unique_ptr<StagedFile>> Stage(const std::string& name) const;
  // The same with these bytes, on the disk where that is asked for.
  absl::StatusOr<std::unique_ptr<StagedFile>> StageWhole(const std::string& name,
                                                         std::string_view bytes) const;

  // The shard as another run has published and journalled it since, whole; none if none has.
  absl::StatusOr<std::optional<ShardResult>> FinishedByOther(const Plan& plan, size_t shard) const;
  // The shards that other runs are at work on, by name.
  absl::StatusOr<std::set<std::string>> HeldByOthers() const { return stage_->HeldByOthers(); }
  // Of a dataset that is complete and whose source was compared with it: the manifest vouches for
  // the source as it is listed now, by the times of its files. The identity stays.
  absl::StatusOr<Manifest> TakeSourceTimes(const Plan& plan);
  // Whether another run has published this plan's dataset meanwhile.
  bool PublishedByOther(const Plan& plan) const;

  // Moves a finished file to its final name, in a folder of OUT if the name has one. What is there
  // with the same bytes stays. With other bytes it is replaced when it lay there as this run began,
  // under a name that an earlier one had noted as its own, or when a run has noted these very
  // bytes; else FailedPrecondition.
  absl::Status Publish(StagedFile& staged, const FileEntry& entry) const;
  // Writes a small file whole, through the staging area, to its final name.
  absl::StatusOr<FileEntry> WriteFile(const std::string& name, std::string_view bytes) const;
  // Before a commit writes its other files: none of the names is somebody else's file, and all are
  // noted as ours.
  absl::Status ClaimExtras(const std::vector<std::pair<std::string, std::string_view>>& files);
  // A folder entry reaches the disk, unless --no-fsync.
  absl::Status SyncFolder() const;
  // The last steps of a commit, after the manifest is in place: the exchange of --overwrite, then
  // .pack goes.
  absl::Status Close();

 private:
  struct Followed;  // what other runs have journalled, as far as it was read
  struct Seen {     // which file it was, and of which state
    uint64_t device, inode, bytes;
    int64_t modified_ns;
    bool operator==(const Seen&) const = default;
  };

  static constexpr uint64_t kMaxPlanBytes = uint64_t{64} << 30;

  OutputDir() = default;
  static absl::Status Conflict(const std::string& path, const std::string& why);
  static absl::Status PlanDiffers(const std::string& out,
                                  const std::vector<std::string>& differences);
  static absl::StatusOr<OutputDir> OpenOnce(const std::string& out, const Plan& plan,
                                            const OutputOptions& options, IoPool& pool);
  absl::Status Lock();
  absl::Status Create();
  absl::Status CheckIsOurs(const std::string& folder) const;
  absl::Status CheckHoldsNothingElse() const;
  absl::Status CheckPublished(const Plan& plan, const Manifest& manifest, IoPool& pool);
  absl::Status BeginReplacement();
  absl::Status CheckBeside() const;
  void RemoveUnused() const;
  absl::Status BeginCommit(const Plan& plan, IoPool& pool);
  absl::Status BeginFolder();
  absl::Status BeginStage(const Plan& plan);
  absl::Status IndexPlan(const Plan& plan, std::optional<Plan>* was);
  absl::Status CheckJournals(const Plan& plan);
  absl::Status ClaimNames(const Plan& plan) const;
  absl::Status DiscardOtherPlan(const Plan& plan);
  absl::Status OrOverwrite(const absl::Status& status) const;
  absl::Status Replace(std::string_view name, std::string_view bytes) const;
  absl::Status PublishOnce(const std::string& name, std::string_view bytes) const;
  void Follow(const std::string& own_journal);
  absl::Status FindFinished(const Plan& plan, const std::optional<Plan>& was, IoPool& pool);
  absl::StatusOr<std::optional<Seen>> LookAt(const std::string& name) const;
  absl::Status MayReplace(const std::string& name);
  absl::Status CheckMayReplace(const std::string& name) const;
  absl::Status NameIndexes(const Plan& plan);
  absl::Status RenameOldIndex(const std::string& shard, FileEntry& index);
  absl::Status CheckFreshness(const Plan& was, const Plan& now) const;
  absl::Status RenewPlan(const Plan& was, const Plan& now);
  absl::Status CheckFreeSpace(const Plan& plan) const;
  absl::Status Exchange();
  absl::Status MarkAndExchange(const OwnedFolder& old);

  std::string out_, path_, notice_;
  OutputOptions options_;
  File lock_;
  bool complete_ = false;
  bool plan_was_lost_ = false;
  std::vector<ShardResult> finished_;
  std::set<uint32_t> journalled_;        // shards that were finished once, as they may be still
  std::unique_ptr<OwnedFolder> folder_;  // of path_
  std::set<std::string> old_indexes_;    // that journals name as older versions did
  // Files that earlier runs have noted as their own, as they were when this one began.
  std::map<std::string, Seen> replaceable_;
  std::unique_ptr<RunStage> stage_;
  std::unique_ptr<Journal> journal_;
  std::shared_ptr<Followed> followed_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_OUTPUT_DIR_H_

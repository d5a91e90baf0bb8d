// OutputDir: the folder that a dataset is built in, with its lock, its plan, its staging area, and
// the work already done.
//
//   absl::StatusOr<OutputDir> out = OutputDir::Open("OUT", plan, OutputOptions{}, pool);
//   if (out->complete()) ...                                 // manifest of this plan, checked
//   const std::vector<ShardResult>& kept = out->finished();  // verified shards of other runs
//
// docs/integrity.md describes the steps and their order. Workers share an OUT
// without a lock: each has its own stage and journal, the plan is published once, claims() says who
// builds which shard, and what one has published the others keep.
//
// Lifetime: holds the lock until destroyed; the plan must live as long.
// Thread-safety: const from any thread.
// Errors: InvalidArgument (exit 2) for an unsuitable OUT; DataLoss (exit 4) for a finished dataset
// that is damaged; FailedPrecondition (exit 5) when OUT belongs to something else, is locked, holds
// shards of another plan, or inputs changed since; I/O Status (exit 6).
// Units: bytes.
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_OUTPUT_DIR_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_OUTPUT_DIR_H_

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "converters/planning/output_options.h"
#include "converters/planning/plan.h"
#include "converters/publishing/finished_shards.h"
#include "converters/publishing/journal.h"
#include "converters/publishing/owned_folder.h"
#include "converters/publishing/published_plan.h"
#include "converters/publishing/replaceable_files.h"
#include "converters/publishing/run_stage.h"
#include "converters/publishing/shard_claims.h"
#include "converters/publishing/shard_results.h"
#include "converters/threads/io_pool.h"
#include "formats/io/staged_file.h"

namespace shardpack {

// Ok when no shards are named, or the plan has them; else InvalidArgument, with those that the plan
// has.
absl::Status CheckNamedShards(const Plan& plan, const OutputOptions& options);

class OutputDir {
 public:
  // Opens or creates OUT for this plan and verifies (on `pool`) what other runs have left.
  static absl::StatusOr<OutputDir> Open(const std::string& out, const Plan& plan,
                                        const OutputOptions& options, IoPool& pool);
  // The plan that OUT/.pack holds, sliced; InvalidArgument if it holds none.
  static absl::StatusOr<Plan> OpenPlan(const std::string& out, const Plan::FindFormat& find_format);
  // The same for a manifest that is damaged; other errors are returned as they are.
  static absl::Status DamagedManifest(const std::string& out, const absl::Status& why);
  // Whether an interrupted run can be continued in OUT.
  static bool HoldsUnfinished(const std::string& out);
  // The folder where --overwrite builds the new dataset; after the exchange it holds the old one
  // until that is removed.
  static std::string BesideOf(const std::string& out);
  // Finishes a run that was killed after it published this manifest: removes the old dataset and
  // `.pack`. Writes nothing if `.pack` holds nothing of pack. Returns a notice for the user, or "":
  // a dataset found in place of the old one is kept.
  // `with_others`: another run may be doing the same, and where the file system has no locks, it
  // may do so unnoticed.
  static absl::StatusOr<std::string> FinishPublished(const std::string& out,
                                                     bool with_others = false);

  OutputDir(OutputDir&&) = default;
  OutputDir& operator=(OutputDir&&) = delete;

  // Where files are written: OUT, or the folder beside it with --overwrite.
  const std::string& path() const { return path_; }
  const OutputOptions& options() const { return options_; }
  bool complete() const { return complete_; }
  // Files are (or were) written to a folder beside OUT, in which no other run works.
  bool replaces() const { return path_ != out_; }
  // See FinishPublished.
  const std::string& notice() const { return notice_; }
  const std::vector<ShardResult>& finished() const;
  // The shards that this run is to see finished, in the order in which it builds them.
  const std::vector<uint32_t>& wanted() const { return wanted_; }
  // nullptr for a run that shares nothing.
  ShardClaims* claims() const { return claims_.get(); }
  Journal& journal() const { return *journal_; }

  std::string PathOf(std::string_view name) const { return path_ + "/" + std::string(name); }
  // A folder of this run alone, for unpublished files.
  std::string StageFolder() const { return stage_->PathOf(""); }
  // Creates a file there; removes one that a failed attempt has left.
  absl::StatusOr<std::unique_ptr<StagedFile>> Stage(const std::string& name) const;
  // The same with these bytes, flushed to disk if requested.
  absl::StatusOr<std::unique_ptr<StagedFile>> StageWhole(std::string_view name,
                                                         std::string_view bytes) const;

  // Reads what other runs have journalled since the last call; of these shards at least, which are
  // wanted. Returns the wanted shards that are journalled, and not taken yet.
  absl::StatusOr<std::set<uint32_t>> FollowOthers(const Plan& plan,
                                                  std::span<const uint32_t> shards) const {
    return finished_->others().FindNew(plan, shards);
  }
  // The shard, once, if another run had published and journalled it by then, intact (for shards
  // that were named: by their hash, else by their sizes); else nullopt.
  absl::StatusOr<std::optional<ShardResult>> TakeFinishedByOther(uint32_t shard) const {
    return finished_->others().Take(shard);
  }
  // Whether that shard was journalled before this run began, damaged or not.
  bool WasJournalled(uint32_t shard) const { return finished_->WasJournalled(shard); }
  // For a complete dataset that was compared with its source: updates the file times in the
  // manifest to those of the source as listed now. The identity stays.
  absl::StatusOr<Manifest> TakeSourceTimes(const Plan& plan);
  // Whether the folder that this run works in is still there under its name.
  bool IsThere() const { return stage_ == nullptr || stage_->IsThere(); }
  // Whether another run has published this plan's dataset since.
  bool PublishedByOther(const Plan& plan) const;

  // Call before anything of a shard is published: waits until OUT holds the whole plan, which for a
  // large one is copied meanwhile. An error says nothing of the shard.
  absl::Status AwaitPlan() const { return published_plan_->AwaitWhole(); }
  // Moves a finished file to its final name, in a folder of OUT if the name has one. An existing
  // file with the same bytes stays. One with other bytes is replaced if it was there when this run
  // began, under a name that an earlier run noted as its own, or if a run has noted exactly these
  // bytes; else FailedPrecondition. Of workers, only one for which shards were named replaces, and
  // nothing that was published since it began: DataLoss, which names both hashes.
  absl::Status Publish(StagedFile& staged, const FileEntry& entry) const;
  // Call before a shard is published whose index is `entry`: the error that Publish of the index
  // would end with if another one is there. What a shard without its index claims is untrue.
  absl::Status CheckMayPublish(const FileEntry& entry) const;
  // Writes a small file as a whole, through the staging area, to its final name.
  absl::StatusOr<FileEntry> WriteFile(const std::string& name, std::string_view bytes) const;
  // Replaces a small file of `.pack` (pack_names.h).
  absl::Status ReplaceInPack(std::string_view name, std::string_view bytes) const;
  // Call before a commit writes its other files: checks that none of the names belongs to a file
  // that is not ours, and notes all of them as ours.
  absl::Status ClaimExtras(const std::vector<std::pair<std::string, std::string_view>>& files);
  // Call right before the manifest is written: FailedPrecondition if another run has replaced a
  // finished shard, or its index, since this one read it.
  absl::Status CheckFinishedUnchanged() const { return finished_->CheckUnchanged(); }
  // Flushes the folder's entries to disk, unless --no-fsync.
  absl::Status SyncFolder() const;
  // The last steps of a commit, once the manifest is in place: the exchange of --overwrite, then
  // removing .pack.
  absl::Status Close();

 private:
  OutputDir() = default;
  // Turns an error of reading the plan into one with advice.
  static absl::Status DamagedPlan(const std::string& out, const absl::Status& why);
  void SetWanted(size_t shards);
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
  absl::Status OpenFolder();
  absl::Status BeginStage(const Plan& plan);
  absl::Status BeginPlan(const Plan& plan, IoPool& pool);
  absl::Status FindFinished(const Plan& plan, const FinishedShards::Past& past, IoPool& pool);
  absl::Status BeginSharing(const Plan& plan);
  bool WasThere(const std::string& name) const;
  absl::Status ReplaceAlone(const std::string& staged, const std::string& name) const;
  absl::Status OtherBytes(const std::string& name, const FileEntry& mine) const;
  absl::Status DiscardOtherPlan(const Plan& plan);
  absl::Status CheckFreeSpace(const Plan& plan) const;
  absl::Status Exchange();
  absl::Status MarkAndExchange(const OwnedFolder& old);

  std::string out_, path_, notice_;
  OutputOptions options_;
  Digest plan_;
  File lock_;
  bool complete_ = false;
  std::vector<uint32_t> wanted_;
  // Each uses those before it.
  std::unique_ptr<OwnedFolder> folder_;  // of path_
  std::unique_ptr<ReplaceableFiles> replaceable_;
  std::unique_ptr<FinishedShards> finished_;
  std::unique_ptr<RunStage> stage_;
  std::unique_ptr<PublishedPlan> published_plan_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<ShardClaims> claims_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_OUTPUT_DIR_H_

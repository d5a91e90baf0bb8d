// OutputDir: the folder that a dataset is built in: its lock, its plan, its staging area, and what is already done.
//
//   absl::StatusOr<OutputDir> out = OutputDir::Open("OUT", plan, OutputOptions{});
//   if (out->complete()) ...                                    // a manifest of the same plan is there
//   const std::vector<ShardResult>& kept = out->finished();     // verified shards of an interrupted run
//
// The steps and their order are those of docs/integrity.md. Lifetime: holds the lock until destroyed. Thread-safety:
// const from any thread. Errors: InvalidArgument (exit 2) for an OUT that cannot be one; FailedPrecondition (exit 5)
// when OUT belongs to something else, is locked, or inputs changed since; I/O Status (exit 6). Units: bytes.
#ifndef SHARDPACK_CONVERTERS_OUTPUT_DIR_H_
#define SHARDPACK_CONVERTERS_OUTPUT_DIR_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "converters/io_pool.h"
#include "converters/journal.h"
#include "converters/plan.h"
#include "formats/io/staged_file.h"

namespace shardpack {

struct OutputOptions {
  bool fsync = true;
  bool overwrite = false;  // replace a dataset of ours: built beside it, exchanged at the end
  // One worker's part of the shards, [first, second): no lock, a journal of its own.
  std::optional<std::pair<size_t, size_t>> shards_range;
};

// Ok when the plan has the shards of the range, if one is given; InvalidArgument that says which it has.
absl::Status CheckShardsRange(const Plan& plan, const OutputOptions& options);

class OutputDir {
 public:
  // Opens or creates OUT for this plan and verifies what an interrupted run has left (on `pool`).
  static absl::StatusOr<OutputDir> Open(const std::string& out, const Plan& plan, const OutputOptions& options,
                                        IoPool& pool);
  // The plan that OUT/.pack holds, for `pack commit`.
  static absl::StatusOr<std::string> ReadPlanBytes(const std::string& out);

  OutputDir(OutputDir&&) = default;
  OutputDir& operator=(OutputDir&&) = default;

  // Where the files go: OUT, or the folder beside it with --overwrite.
  const std::string& path() const { return path_; }
  const OutputOptions& options() const { return options_; }
  bool complete() const { return complete_; }
  const std::vector<ShardResult>& finished() const { return finished_; }
  Journal& journal() const { return *journal_; }

  std::string PathOf(const std::string& name) const { return path_ + "/" + name; }
  std::string StagePathOf(const std::string& name) const { return path_ + "/.pack/stage/" + name; }
  std::string PackFolder() const { return path_ + "/.pack"; }

  // Moves a finished file to its final name, in a folder of OUT if the name has one.
  absl::Status Publish(StagedFile& staged, const std::string& name) const;
  // Writes a small file whole, through the staging area, to its final name; replaces nothing.
  absl::StatusOr<FileEntry> WriteFile(const std::string& name, std::string_view bytes) const;
  // A folder entry reaches the disk, unless --no-fsync.
  absl::Status SyncFolder() const;
  // The last steps of a commit, after the manifest is in place: the exchange of --overwrite, then .pack goes.
  absl::Status Close();

 private:
  OutputDir() = default;
  absl::Status Lock();
  absl::Status Create();
  absl::Status CheckIsOurs() const;
  absl::Status CheckHoldsNothingElse() const;
  absl::Status BeginReplacement();
  absl::Status BeginFolder();
  absl::Status AdoptPlan(const Plan& plan, bool* had_plan);
  absl::Status KeepFinished(const Plan& plan, IoPool& pool);
  absl::Status CheckFreshness(const Plan& was, const Plan& now) const;
  absl::Status CheckFreeSpace(const Plan& plan) const;

  std::string out_, path_;
  OutputOptions options_;
  File lock_;
  bool complete_ = false;
  std::vector<ShardResult> finished_;
  std::unique_ptr<Journal> journal_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_OUTPUT_DIR_H_

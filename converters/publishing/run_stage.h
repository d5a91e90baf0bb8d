// RunStage: one run's own staging folder in OUT/.pack/stage, so that runs that share an OUT never
// write to the same file.
//
//   absl::StatusOr<std::unique_ptr<RunStage>> stage = RunStage::Create("OUT");  // in .pack/stage
//   StagedFile::Create((*stage)->PathOf("train-000000.tar"));
//
// Its name contains host, boot, process and chance; a file beside it is locked as long as the run
// lives. The next run removes what a killed run of this machine has left, and touches nothing else.
//
// Lifetime: the destructor removes what is left of the run, and the folder unless it holds
// something else.
// Thread-safety: const methods from any thread.
// Errors: I/O Status.
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_RUN_STAGE_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_RUN_STAGE_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "converters/publishing/owned_folder.h"
#include "formats/io/file.h"
#include "formats/io/staged_file.h"

namespace shardpack {

// The name, in a stage, of what a run is just writing and then gives its place.
inline constexpr std::string_view kOfTheRun = "of-the-run";
// The same of a plan that is copied meanwhile.
inline constexpr std::string_view kPlanOfTheRun = "plan-of-the-run";

class RunStage {
 public:
  // `.pack/stage` must exist.
  static absl::StatusOr<std::unique_ptr<RunStage>> Create(const std::string& dataset);
  ~RunStage();
  RunStage(const RunStage&) = delete;
  RunStage& operator=(const RunStage&) = delete;

  const std::string& owner() const { return owner_; }
  // Relative to the dataset's folder.
  std::string NameOf(std::string_view name) const;
  std::string PathOf(std::string_view name) const { return folder_.PathOf(NameOf(name)); }
  // Whether that run was one of this machine, and has ended. Of other machines nothing is known.
  bool IsDeadHere(const std::string& run) const { return IsDeadHere(folder_, run); }
  static bool IsDeadHere(const OwnedFolder& dataset, const std::string& run);
  // Whether its lock can be asked for here: only locks of the same machine show that a run is dead.
  static bool IsOfThisMachine(std::string_view run);
  // Whether the folder that it was created in is still there under its name, and holds it.
  bool IsThere() const;
  // The file system's time now, of a file that is created for it; nullopt where nothing can be.
  static std::optional<double> FileSystemSeconds(const OwnedFolder& dataset);
  // Unimplemented unless the file system can do, in this stage, what runs that share a folder rely
  // on: exclusive creation, hard links, renaming. `so` follows "..., so that " in the message.
  absl::Status TestFileSystem(std::string_view so) const;

  // A new file in the stage, in place of one of that name.
  absl::StatusOr<std::unique_ptr<StagedFile>> Stage(std::string_view name) const;
  // The same with these bytes, flushed to the disk if `sync`.
  absl::StatusOr<std::unique_ptr<StagedFile>> StageWhole(std::string_view name,
                                                         std::string_view bytes, bool sync) const;

 private:
  RunStage(OwnedFolder folder, std::string owner)
      : folder_(std::move(folder)), owner_(std::move(owner)) {}
  absl::Status Lock();

  OwnedFolder folder_;  // the dataset's
  const std::string owner_;
  File lock_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_RUN_STAGE_H_

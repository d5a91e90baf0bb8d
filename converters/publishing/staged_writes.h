// Staged writes: gives what a run has written in its stage a place in the dataset's folder.
//
//   absl::Status placed = Place(*staged, "OUT/train-000000.tar", options.shares());
//   absl::Status replaced = ReplaceInPack(*folder, *stage, ".pack/made", names, options.fsync);
//
// Thread-safety: any thread, for files of their own.
// Errors: AlreadyExists; FailedPrecondition (exit 5); I/O Status.
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_STAGED_WRITES_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_STAGED_WRITES_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "converters/publishing/owned_folder.h"
#include "converters/publishing/run_stage.h"
#include "formats/io/staged_file.h"

namespace shardpack {

// The file appears complete, and once: another run's file of that name stays. `shares`: other runs
// work in the folder.
absl::Status Place(StagedFile& staged, const std::string& path, bool shares);

// A file of `.pack` that another program or a user made stays: FailedPrecondition.
absl::Status CheckOursInPack(const OwnedFolder& folder, std::string_view name);
// Replaces a small file of `.pack` atomically, flushed to disk if `sync`.
absl::Status ReplaceInPack(const OwnedFolder& folder, const RunStage& stage, std::string_view name,
                           std::string_view bytes, bool sync);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_STAGED_WRITES_H_

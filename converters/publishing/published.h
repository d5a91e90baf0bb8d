// Checks of a finished dataset that do not read its bytes: one stat per file.
//
//   absl::Status whole = CheckPublishedFiles("OUT", manifest);          // files and sizes
//   absl::Status fresh = CheckSource("OUT", manifest, plan, options, pool);  // source times
//
// Lifetime: borrows for the call.
// Thread-safety: pure except for the file system.
// Errors: DataLoss (exit 4) that names files and the command that repairs them; FailedPrecondition
// (exit 5) for a source that was changed; I/O Status.
// Units: bytes, nanoseconds.
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_PUBLISHED_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_PUBLISHED_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "converters/planning/output_options.h"
#include "converters/planning/plan.h"
#include "converters/threads/io_pool.h"
#include "formats/core/manifest.h"

namespace shardpack {

// The differences between the manifest's plan and this one, one line each, for the user.
std::vector<std::string> DifferencesFrom(const std::string& dataset, const Manifest& was,
                                         const Plan& plan);

absl::Status CheckPublishedFiles(const std::string& dataset, const Manifest& manifest);
// Ok when no file of the plan's listing was modified since it was packed, by the times in the
// manifest, or by the manifest's own age if it is of an older version. With `planned_source`, also
// compares size and time of the files in that folder; names and sizes of a listing made just now
// need no check, because the plan's digest covers them. With a range of shards, only their files
// are checked.
absl::Status CheckSource(const std::string& dataset, const Manifest& manifest, const Plan& plan,
                         const OutputOptions& options, IoPool& pool);

// FailedPrecondition when files of these shards, which are built, have other sizes or times below
// `root` than planned; missing files are ignored.
absl::Status CheckBuiltFrom(const std::string& out, const Plan& plan, const std::string& root,
                            std::span<const uint32_t> shards, IoPool& pool);

// Call before these shards are built: FailedPrecondition when all their files below `root` have the
// planned sizes but none has the planned time, as in a copy that did not keep times, or when none
// of them exists, as where a disk is not mounted. Every file would otherwise be skipped.
absl::Status CheckSourceFits(const Plan& plan, const std::string& root,
                             std::span<const uint32_t> shards);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_PUBLISHED_H_

// What a look at a finished dataset tells, without reading its bytes: one stat a file.
//
//   absl::Status whole = CheckPublishedFiles("OUT", manifest);            // each file is there, with its size
//   absl::Status fresh = CheckSource("OUT", manifest, plan, options, pool);   // no source file was changed
//
// Lifetime, thread-safety: pure but for the file system.
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

// What the plan of the dataset's manifest and this one differ in, one line each, for the user.
std::vector<std::string> DifferencesFrom(const std::string& dataset, const Manifest& was,
                                         const Plan& plan);

absl::Status CheckPublishedFiles(const std::string& dataset, const Manifest& manifest);
// No file of the plan's listing was modified since it was packed, by the times that the manifest
// vouches for; by its own age where it is of an older version. With `planned_source` the files are
// looked at again there, by size and time; the names and sizes of a listing that was just made are
// part of the plan's digest. With a range of shards the files of these alone are looked at.
absl::Status CheckSource(const std::string& dataset, const Manifest& manifest, const Plan& plan,
                         const OutputOptions& options, IoPool& pool);

// FailedPrecondition when files of these shards, which are built, have other sizes or times below
// `root` than were planned; those that are not there are passed over.
absl::Status CheckBuiltFrom(const std::string& out, const Plan& plan, const std::string& root,
                            std::span<const uint32_t> shards, IoPool& pool);

// Before these shards are built: FailedPrecondition when all their files, below `root`, have the
// sizes but none the time that the plan has, as in a copy that was made without keeping times. Each
// would be taken for one that was changed.
absl::Status CheckKeepsTimes(const Plan& plan, const std::string& root,
                             std::span<const uint32_t> shards);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_PUBLISHED_H_

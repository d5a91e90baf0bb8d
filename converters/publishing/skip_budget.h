// CheckSkips: whether what a run had to leave out lets it be published, and else what leads on.
//
//   absl::Status allowed = CheckSkips(plan, results, counts, skips, options, out);
//
// The ways on are those that work: a share that publishes a shard without a sample is not offered,
// nor is packing again what a given plan holds as bad.
//
// Lifetime: borrows for the call.
// Thread-safety: pure but for the file system.
// Errors: DataLoss (exit 4), with the flags to add or the commands to type; Internal when the
// counts do not add up.
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_SKIP_BUDGET_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_SKIP_BUDGET_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "converters/publishing/commit.h"

namespace shardpack {

// `skips`: all of the run, by row.
absl::Status CheckSkips(const Plan& plan, std::span<const ShardResult> results,
                        const ManifestCounts& counts, std::span<const Skip> skips,
                        const CommitOptions& options, const OutputDir& out);

// For what the user is told: a file that was empty when it was planned, and is not now below
// `root`, is one that has changed.
std::vector<Skip> SkipsOfToday(const Plan& plan, const std::string& root,
                               std::span<const Skip> skips);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_SKIP_BUDGET_H_

// CheckSkips: whether what a run had to leave out lets it be published, and else what leads on.
// CheckBudget: the same of a dataset that is published.
//
//   absl::Status allowed = CheckSkips(plan, results, counts, skips, options, out);
//   absl::Status still = CheckBudget(manifest, 0.01);
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

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "converters/publishing/commit.h"

namespace shardpack {

// The share of the inputs that are not in a dataset.
struct SkipShare {
  uint64_t lost = 0, seen = 0;

  double share() const;
  bool Within(double max_skip) const { return share() <= max_skip; }
  // The smallest that it is within, in whole percents: as a person would type them.
  uint64_t Percent() const;
};

// DataLoss when more inputs of a published dataset are missing than are allowed now.
absl::Status CheckBudget(const Manifest& manifest, double max_skip);

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

// CheckSkips: decides whether a run may publish despite the inputs it left out, and if not, what to
// do. CheckBudget: the same for a published dataset.
//
//   absl::Status allowed = CheckSkips(plan, results, counts, skips, options, out);
//   absl::Status still = CheckBudget(manifest, 0.01);
//
// A refusal names a few skips, and lists all of them in `.pack/skipped.jsonl`. Only advice that
// works is given: it never offers a share that would publish a shard without a sample, nor packing
// again what a given plan holds as bad.
//
// Lifetime: borrows for the call.
// Thread-safety: pure except for the file system.
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

// The share of inputs missing from a dataset.
struct SkipShare {
  uint64_t lost = 0, seen = 0;

  double share() const;
  bool Within(double max_skip) const { return share() <= max_skip; }
  // The smallest limit that allows it, in whole percent, as a person would type it.
  uint64_t Percent() const;
};

// DataLoss when more inputs are missing from a published dataset than are allowed now.
absl::Status CheckBudget(const Manifest& manifest, double max_skip);

// `skips`: all of the run, by row.
absl::Status CheckSkips(const Plan& plan, std::span<const ShardResult> results,
                        const ManifestCounts& counts, std::span<const Skip> skips,
                        const CommitOptions& options, const OutputDir& out);

// For messages: a file that was empty when planned, but is not any more below `root`, counts as
// changed.
std::vector<Skip> SkipsOfToday(const Plan& plan, const std::string& root,
                               std::span<const Skip> skips);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_SKIP_BUDGET_H_

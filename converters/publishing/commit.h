// Commit: publishes a dataset whose shards are all finished: sidecars, skipped.jsonl, SHA256SUMS,
// and last the manifest.
//
//   absl::StatusOr<Manifest> manifest = Commit(plan, results, out, CommitOptions{});
//
// Lifetime: borrows for the call.
// Thread-safety: one caller per OUT.
// Errors: FailedPrecondition (exit 5) when shards are missing or OUT holds files that are not ours;
// DataLoss (exit 4) when more inputs were bad than allowed, a shard has no sample left, the counts
// do not add up, or a finished shard or index has vanished or was cut since: nothing is published,
// the journal stays; I/O Status (exit 6).
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_COMMIT_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_COMMIT_H_

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "converters/planning/plan.h"
#include "converters/publishing/output_dir.h"
#include "formats/core/format.h"

namespace shardpack {

inline constexpr std::string_view kSkippedName = "skipped.jsonl";
inline constexpr std::string_view kSha256Name = "SHA256SUMS";

struct CommitOptions {
  double max_skip = 0.01;
  std::map<std::string, std::string> tool;
  std::optional<Digest> expect;
  bool plan_is_given = false;  // it was made earlier, and does not change with the source
};

// All skips of a run: those of the listing, the plan and the shards. In the order of
// Plan::source_row, which is that of their rows only where the plan is not sliced.
absl::StatusOr<std::vector<Skip>> AllSkips(const Plan& plan, std::span<const ShardResult> results);

// The text of skipped.jsonl: the lost inputs (`skips`, by row), and the copies left out on request,
// which count as filtered.
std::string SkippedLines(const Plan& plan, std::span<const Skip> skips);

// The text of SHA256SUMS for a manifest whose shards have their sums.
std::string Sha256Lines(const Manifest& manifest);

// What makes a layout's files, and those of --sidecar-index, from shards and indexes, in order.
// InvalidArgument for a kind that the format does not have.
absl::StatusOr<std::vector<FileMaker>> FileMakersOf(const Format& format, const LayoutSpec& layout,
                                                    std::span<const std::string> kinds);

// DataLoss unless the dataset is the expected one, if any (--expect).
absl::Status CheckIdentity(const Manifest& manifest, const std::optional<Digest>& expected);

// `results`: one per shard of the plan, in order.
absl::StatusOr<Manifest> Commit(const Plan& plan, std::span<const ShardResult> results,
                                OutputDir& out, const CommitOptions& options);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_COMMIT_H_

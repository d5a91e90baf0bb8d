// Decides which journal lines are still true of the shards of a plan.
//
//   absl::Status one_plan = CheckOnePlan("OUT", plan.digest(), lines);  // names files of other plans
//   absl::StatusOr<ShardStates> states =
//       LookAtShards("OUT", plan, lines, wanted, ShardLook::kHash, pool);
//   if (states->finished.size() < plan.shards().size())
//     return Unfinished("OUT", plan, *states, held);
//
// Nothing is changed.
//
// Lifetime: borrows for the call.
// Thread-safety: pure except for the file system.
// Errors: FailedPrecondition (exit 5), DataLoss (exit 4), I/O Status.
// Units: bytes.
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_SHARD_RESULTS_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_SHARD_RESULTS_H_

#include <atomic>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "converters/planning/plan.h"
#include "converters/publishing/journal.h"
#include "converters/threads/io_pool.h"

namespace shardpack {

struct ShardStates {
  std::vector<ShardResult> finished;  // at most one per shard, sorted; the files match their hashes
  std::map<uint32_t, std::string> damaged;  // journalled shards whose files have changed, and how
};

enum class ShardLook : uint8_t { kHash, kSize };

// Hashes a file, or looks at its size; false when it does not match the entry or may not be read;
// `why` then says why. Cancelled when `stop` is set meanwhile.
absl::StatusOr<bool> Matches(const std::string& path, const FileEntry& entry,
                             ShardLook look = ShardLook::kHash, std::string* why = nullptr,
                             const std::atomic<int>* stop = nullptr);

// A row (of `now`) of the shard with a file whose time differs between two plans of the same
// digest.
absl::StatusOr<std::optional<uint32_t>> FirstChangedRow(const Plan& was, const Plan& now,
                                                        size_t shard);

// Whether the line can describe this plan's shard at all: its names, numbers and plan match, and so
// do the times of the files that it was built from.
bool FitsPlan(const ShardResult& line, const Plan& plan);

// FailedPrecondition when lines are of another plan. A line that names no plan is of the one in
// `.pack`.
absl::Status CheckOnePlan(const std::string& dataset, const Digest& plan,
                          std::span<const ShardResult> lines);

// Checks the shards for which `wants`, by number, is true. Cancelled when `stop` is set meanwhile.
absl::StatusOr<ShardStates> LookAtShards(const std::string& dataset, const Plan& plan,
                                         std::span<const ShardResult> lines,
                                         const std::vector<bool>& wants, ShardLook look,
                                         IoPool& pool, const std::atomic<int>* stop = nullptr);

// Whether the reason for a skip does not depend on the input's bytes: the input may be available
// again, as planned.
bool MayBeBack(const Skip& skip);

// Whether the shard lacks such inputs: a worker may have had another folder, or an empty mount.
// Such a shard is built again.
bool LacksWhatMayBeBack(const ShardResult& result);

// "7-8,21", or with more than so many ranges "7-8,21 and 5 more ranges".
std::string ShardList(const std::set<uint32_t>& shards,
                      size_t most = std::numeric_limits<size_t>::max());

// The commands that build these shards (at least one) and publish all. Those of `damaged` have to
// be named, those of `missing` only if that is short.
std::string HowToBuild(const std::string& dataset, const Plan& plan,
                       const std::set<uint32_t>& damaged, const std::set<uint32_t>& missing = {});

// Why nothing can be published, with the commands that build what is missing, and who holds some of
// it now. DataLoss when shards are damaged, else Aborted.
absl::Status Unfinished(const std::string& dataset, const Plan& plan, const ShardStates& states,
                        const std::set<uint32_t>& held);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_SHARD_RESULTS_H_

// ShardChoice: which of the shards that wait a run builds next. A run that works alone takes the
// first; workers leave each other what they hold, and what they have finished.
//
//   ASSIGN_OR_RETURN(ShardChoice::Choice next, choice.Next(waiting, idle));
//   if (next.shard) Open(*next.shard); else for (ShardResult& theirs : next.theirs) Report(theirs);
//
// Lifetime: borrows plan and out.
// Thread-safety: one caller at a time.
// Errors: I/O Status; DataLoss when all that is left are shards that too many workers have failed
// at.
#ifndef SHARDPACK_CONVERTERS_BUILDING_SHARD_CHOICE_H_
#define SHARDPACK_CONVERTERS_BUILDING_SHARD_CHOICE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "converters/planning/plan.h"
#include "converters/publishing/journal.h"
#include "converters/publishing/output_dir.h"

namespace shardpack {

class ShardChoice {
 public:
  struct Choice {
    std::optional<uint32_t> shard = std::nullopt;  // to be built by this run
    std::vector<ShardResult> theirs = {};          // finished by others
  };

  ShardChoice(const Plan& plan, OutputDir& out) : plan_(plan), out_(out) {}

  // With `waiting` not empty; a choice of nothing means that others hold all of them, or that too
  // many have failed at them, which is an error once this run is `idle`: builds no other shard.
  absl::StatusOr<Choice> Next(std::span<const uint32_t> waiting, bool idle);
  // Why a worker that does not wait ends, with these left.
  static absl::Status Held(std::span<const uint32_t> waiting);

 private:
  absl::StatusOr<std::vector<ShardResult>> Theirs(std::span<const uint32_t> waiting);

  const Plan& plan_;
  OutputDir& out_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_BUILDING_SHARD_CHOICE_H_

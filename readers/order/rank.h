// Rank: the share of every global batch that a process takes: contiguous, and of equal size for all
// ranks.
//
//   const Rank rank = {.rank = 3, .world_size = 8};
//   absl::Status divides = CheckRank(rank, 256);
//   order.Ids(epoch, step, rank.first_slot(256), ids);    // ids.size() == rank.slots(256)
//
// The shares, concatenated in rank order, are the global batch whatever the world size, so a run
// can continue with another one. Unequal shares cannot be expressed, so no rank waits for a batch
// that another does not have.
//
// Thread-safety: any thread.
// Errors: InvalidArgument (CheckRank); the other functions require a rank that passed it.
// Units: slots of a global batch, from 0.
#ifndef SHARDPACK_READERS_ORDER_RANK_H_
#define SHARDPACK_READERS_ORDER_RANK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace shardpack {

struct Rank {
  uint32_t rank = 0, world_size = 1;

  constexpr uint32_t slots(uint32_t global_batch) const { return global_batch / world_size; }
  constexpr uint32_t first_slot(uint32_t global_batch) const { return rank * slots(global_batch); }
  friend bool operator==(const Rank&, const Rank&) = default;
};

// Reports what is wrong; if the batch does not divide, also the nearest sizes that would.
inline absl::Status CheckRank(Rank rank, uint32_t global_batch) {
  if (rank.world_size == 0) return absl::InvalidArgumentError("a world size of 0");
  if (rank.rank >= rank.world_size) {
    return absl::InvalidArgumentError(absl::StrCat("rank ", rank.rank, " of a world size of ",
                                                   rank.world_size, ": ranks count from 0"));
  }
  if (global_batch == 0) return absl::InvalidArgumentError("a global batch of 0");
  if (global_batch % rank.world_size == 0) return absl::OkStatus();
  const uint64_t below = global_batch / rank.world_size * uint64_t{rank.world_size};
  return absl::InvalidArgumentError(absl::StrCat(
      "a global batch of ", global_batch, " does not divide among ", rank.world_size, " ranks; ",
      below == 0 ? "" : absl::StrCat(below, " or "), below + rank.world_size, " would"));
}

}  // namespace shardpack

#endif  // SHARDPACK_READERS_ORDER_RANK_H_

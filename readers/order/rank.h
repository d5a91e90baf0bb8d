// Rank: which share of every global batch a process takes: a contiguous one, as large as everybody
// else's.
//
//   const Rank rank = {.rank = 3, .world_size = 8};
//   absl::Status divides = CheckRank(rank, 256);
//   order.Ids(epoch, step, rank.first_slot(256), ids);    // ids.size() == rank.slots(256)
//
// The shares joined in the order of ranks are the global batch, whatever the world size is: a run
// may go on with another one. Shares of different size cannot be expressed, so no rank waits for a
// batch that another does not have.
//
// Thread-safety: any thread.
// Errors: InvalidArgument (CheckRank); the other functions want a rank that passed it.
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

// Says what is wrong and, when the batch does not divide, which sizes near it would.
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

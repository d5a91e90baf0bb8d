// FindNearPairs: all pairs of 64-bit hashes that differ in at most a few bits.
//
//   FindNearPairs(hashes, 6, stop,
//                 [&](const NearPair& pair) { groups.Join(pair.first, pair.second); });
//
// The bits are divided into four bands. Of two hashes that differ in few bits at least one band
// differs in a quarter of them or less (Norouzi, Punjani, Fleet, "Fast search in Hamming space with
// multi-index hashing", 2012), so only hashes from buckets that close are compared. Each pair is
// found once.
//
// Lifetime: borrows the hashes during the call.
// Thread-safety: works on all cores; `found` is called by one thread at a time, in no order.
// Errors: false if `stop` became nonzero.
// Memory: 64 bytes a hash and 1 MiB. Time: about n^2 / 2,500 comparisons at a distance of 6, if the
// hashes are spread evenly; give each value once, because equal ones are all pairs.
// Units: bits.
#ifndef SHARDPACK_VALIDATORS_LOOKING_NEAR_PAIRS_H_
#define SHARDPACK_VALIDATORS_LOOKING_NEAR_PAIRS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>

#include "validators/looking/looking_options.h"

namespace shardpack {

struct NearPair {
  uint32_t first, second;  // places of the hashes, ascending
  int distance;
};

// At most 2^32 - 1 hashes; `distance` from 0 to kMaxNearDistance.
bool FindNearPairs(std::span<const uint64_t> hashes, int distance, const std::atomic<int>& stop,
                   const std::function<void(const NearPair&)>& found);

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_LOOKING_NEAR_PAIRS_H_

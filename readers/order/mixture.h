// The arithmetic of mixtures: how many samples of an epoch each part contributes, and in which
// slots.
//
//   std::vector<uint64_t> counts = Apportion(1000, weights);      // {667, 333} for weights 2 : 1
//   MixtureWalk walk(counts, /*first_slot=*/500);
//   auto [part, index] = walk.Next();    // slot 500 takes the part's sample number `index`
//
// Counts use the largest-remainder method; on a tie, the earlier part wins. Slots go to the parts
// in ascending order of (2j + 1) / count, the Webster / Sainte-Lague sequence: evenly spread, so
// every stretch of slots holds about each part's share. Integer arithmetic only, so results are the
// same on every machine.
//
// Lifetime: plain values; a walk copies the counts.
// Thread-safety: one caller at a time.
// Units: slots of an epoch and samples of a part, from 0.
#ifndef SHARDPACK_READERS_ORDER_MIXTURE_H_
#define SHARDPACK_READERS_ORDER_MIXTURE_H_

#include <cstdint>
#include <queue>
#include <span>
#include <vector>

namespace shardpack {

// `total` below 2^62; the sum of the weights below 2^62 and not 0. The counts add up to `total`.
std::vector<uint64_t> Apportion(uint64_t total, std::span<const uint64_t> weights);

class MixtureWalk {
 public:
  struct Slot {
    uint32_t part;
    uint64_t index;  // among the part's samples in this epoch
  };

  // `counts`: each from 1 to 2^62, their sum below 2^62. Cost: O(k log k) for k parts, at any slot.
  MixtureWalk(std::span<const uint64_t> counts, uint64_t first_slot);

  // Requires a remaining slot. Cost: O(log k).
  Slot Next();

 private:
  struct Seat {
    uint64_t index, count;
    uint32_t part;
  };
  struct Later {
    bool operator()(const Seat& a, const Seat& b) const;
  };

  std::priority_queue<Seat, std::vector<Seat>, Later> next_;  // each part's next slot
};

}  // namespace shardpack

#endif  // SHARDPACK_READERS_ORDER_MIXTURE_H_

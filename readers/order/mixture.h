// The arithmetic of mixtures: how many samples of an epoch each part gives, and in which slots.
//
//   std::vector<uint64_t> counts = Apportion(1000, weights);      // of 2 : 1, {667, 333}
//   MixtureWalk walk(counts, /*first_slot=*/500);
//   auto [part, index] = walk.Next();    // slot 500 takes the part's sample number `index`
//
// Counts are those of largest remainders, the earlier part first where these are equal. Slots go to
// the parts in the order of the odd numbers over counts, (2j + 1) / count, which is the sequence of
// seats by Webster / Sainte-Lague: evenly spread, so that every stretch of slots holds each part in
// about its share. Integers only: the same on every machine.
//
// Lifetime: plain values; a walk keeps a copy of the counts.
// Thread-safety: one caller at a time.
// Units: slots of an epoch and samples of a part, from 0.
#ifndef SHARDPACK_READERS_ORDER_MIXTURE_H_
#define SHARDPACK_READERS_ORDER_MIXTURE_H_

#include <cstdint>
#include <queue>
#include <span>
#include <vector>

namespace shardpack {

// `total` below 2^62; weights below 2^62 in sum, one of them not 0. The counts add up to `total`.
std::vector<uint64_t> Apportion(uint64_t total, std::span<const uint64_t> weights);

class MixtureWalk {
 public:
  struct Slot {
    uint32_t part;
    uint64_t index;  // of the part's samples in this epoch
  };

  // `counts`: each from 1 to 2^62, below 2^62 in sum. Cost: O(k log k) for k parts, at any slot.
  MixtureWalk(std::span<const uint64_t> counts, uint64_t first_slot);

  // There must be slots left. Cost: O(log k).
  Slot Next();

 private:
  struct Seat {
    uint64_t index, count;
    uint32_t part;
  };
  struct Later {
    bool operator()(const Seat& a, const Seat& b) const;
  };

  std::priority_queue<Seat, std::vector<Seat>, Later> next_;  // the next slot of each part
};

}  // namespace shardpack

#endif  // SHARDPACK_READERS_ORDER_MIXTURE_H_

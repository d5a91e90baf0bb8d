// BlockShuffle: a shuffle for media on which distant reads are slow. Blocks of consecutive numbers
// are permuted, and the numbers of a window of blocks that have become neighbours are mixed.
//
//   BlockShuffle shuffle(1'281'167, /*block=*/256, /*window=*/64, MixKey(seed, epoch));
//   std::array<uint64_t, 256> ids;
//   shuffle.Fill(/*first_index=*/0, ids);    // of 64 blocks that lie anywhere
//
// Every stretch of window * block indexes, counted from 0, holds the numbers of `window` blocks and
// no others. The last block is shorter where `block` does not divide the size; the window it falls
// into is as much shorter, and those after it begin as much earlier.
//
// Thread-safety: const, any thread.
// Units: numbers and indexes from 0; block in numbers, window in blocks.
#ifndef SHARDPACK_READERS_ORDER_BLOCK_SHUFFLE_H_
#define SHARDPACK_READERS_ORDER_BLOCK_SHUFFLE_H_

#include <cstdint>
#include <span>

#include "readers/order/permutation.h"

namespace shardpack {

class BlockShuffle {
 public:
  // `size` from 1 to 2^60; `block` and `window` from 1. A window of all blocks or more is a shuffle
  // of everything.
  BlockShuffle(uint64_t size, uint32_t block, uint32_t window, uint64_t key);

  // The numbers at the indexes from `first_index` on; all must be below size.
  void Fill(uint64_t first_index, std::span<uint64_t> out) const;

 private:
  uint64_t WindowOf(uint64_t index) const;
  uint64_t WindowBegin(uint64_t window) const;
  void FillFromWindow(uint64_t window, const Permutation& mix, uint64_t first,
                      std::span<uint64_t> out) const;

  uint64_t size_, block_, window_;  // window_ in blocks
  uint64_t missing_;                // what the last block lacks
  uint64_t key_;
  Permutation blocks_;
  uint64_t last_block_index_;  // among the permuted blocks
};

}  // namespace shardpack

#endif  // SHARDPACK_READERS_ORDER_BLOCK_SHUFFLE_H_

// BlockShuffle: a shuffle for media on which distant reads are slow. It permutes blocks of
// consecutive numbers, then shuffles the numbers within each window of adjacent permuted blocks.
//
//   BlockShuffle shuffle(1'281'167, /*block=*/256, /*window=*/64, MixKey(seed, epoch));
//   std::array<uint64_t, 256> ids;
//   shuffle.Fill(/*first_index=*/0, ids);    // drawn from 64 blocks anywhere in the range
//
// Each aligned stretch of window * block indexes holds exactly the numbers of `window` blocks. The
// last block is shorter if `block` does not divide the size; its window is shorter by the same
// amount, and all later windows begin earlier by that amount.
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
  // `size` from 1 to 2^60; `block` and `window` from 1. A window that covers all blocks shuffles
  // everything.
  BlockShuffle(uint64_t size, uint32_t block, uint32_t window, uint64_t key);

  // The numbers at the indexes starting at `first_index`; all indexes must be below size.
  void Fill(uint64_t first_index, std::span<uint64_t> out) const;

 private:
  uint64_t WindowOf(uint64_t index) const;
  uint64_t WindowBegin(uint64_t window) const;
  void FillFromWindow(uint64_t window, const Permutation& mix, uint64_t first,
                      std::span<uint64_t> out) const;

  uint64_t size_, block_, window_;  // window_ in blocks
  uint64_t missing_;                // by how much the last block is short
  uint64_t key_;
  Permutation blocks_;
  uint64_t last_block_index_;  // its position among the permuted blocks
};

}  // namespace shardpack

#endif  // SHARDPACK_READERS_ORDER_BLOCK_SHUFFLE_H_

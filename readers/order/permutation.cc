#include "readers/order/permutation.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace shardpack {
namespace {

// The top bits depend on all bits of `x`.
inline uint64_t Scramble(uint64_t x) {
  x *= 0x9E3779B97F4A7C15;
  x ^= x >> 32;
  return x * 0xD6E8FEB86659FD93;
}

// Below this size, the network mixes too little: some orders are more likely than others. A table
// of sixteen numbers fits one word.
constexpr uint64_t kTableSize = 16;

inline uint64_t Nibble(uint64_t table, uint64_t index) { return table >> (4 * index) & 15; }

// Fisher-Yates: picks one of the numbers from `i` on and moves it to `i`.
uint64_t ShuffledTable(uint64_t size, uint64_t key) {
  uint64_t table = 0xFEDCBA9876543210;
  for (uint64_t i = 0; i + 1 < size; ++i) {
    const uint64_t drawn = i + MixKey(key, i) % (size - i);
    const uint64_t differ = Nibble(table, i) ^ Nibble(table, drawn);
    table ^= differ << (4 * i) ^ differ << (4 * drawn);
  }
  return table;
}

}  // namespace

Permutation::Permutation(uint64_t size, uint64_t key) : size_(size) {
  // Mixed in advance, so that keys that differ in few bits share no round.
  const uint64_t base = MixKey(key, size);
  if (size <= kTableSize) {
    table_ = ShuffledTable(size, base);
    return;
  }
  const int bits = std::bit_width(size - 1);
  const int high_bits = bits / 2;
  low_bits_ = static_cast<uint8_t>(bits - high_bits);
  low_shift_ = static_cast<uint8_t>(64 - low_bits_);
  high_shift_ = static_cast<uint8_t>(64 - high_bits);
  low_mask_ = (uint64_t{1} << low_bits_) - 1;
  for (uint64_t round = 0; round < kRounds; ++round) keys_[round] = MixKey(base, round);
}

inline uint64_t Permutation::Forward(uint64_t x) const {
  uint64_t low = x & low_mask_, high = x >> low_bits_;
  for (int round = 0; round < kRounds; round += 2) {
    high ^= Scramble(low ^ keys_[round]) >> high_shift_;
    low ^= Scramble(high ^ keys_[round + 1]) >> low_shift_;
  }
  return high << low_bits_ | low;
}

inline uint64_t Permutation::Backward(uint64_t x) const {
  uint64_t low = x & low_mask_, high = x >> low_bits_;
  for (int round = kRounds; round > 0; round -= 2) {
    low ^= Scramble(high ^ keys_[round - 1]) >> low_shift_;
    high ^= Scramble(low ^ keys_[round - 2]) >> high_shift_;
  }
  return high << low_bits_ | low;
}

uint64_t Permutation::Map(uint64_t index) const {
  if (size_ <= kTableSize) return Nibble(table_, index);
  uint64_t x = Forward(index);
  while (x >= size_) x = Forward(x);
  return x;
}

uint64_t Permutation::Inverse(uint64_t value) const {
  if (size_ <= kTableSize) {
    uint64_t index = 0;
    while (Nibble(table_, index) != value) ++index;
    return index;
  }
  uint64_t x = Backward(value);
  while (x >= size_) x = Backward(x);
  return x;
}

void Permutation::MapAll(std::span<uint64_t> indexes) const {
  if (size_ <= kTableSize) {
    for (uint64_t& index : indexes) index = Nibble(table_, index);
    return;
  }
  // One step of all walks, independent of each other; then another one for those still at or above
  // the size, and so on. No branch depends on the state of a walk.
  std::array<uint16_t, 256> walking;
  while (!indexes.empty()) {
    const std::span<uint64_t> run = indexes.first(std::min(indexes.size(), walking.size()));
    size_t left = 0;
    for (size_t i = 0; i < run.size(); ++i) {
      run[i] = Forward(run[i]);
      walking[left] = static_cast<uint16_t>(i);
      left += run[i] >= size_;
    }
    while (left > 0) {
      const size_t count = std::exchange(left, 0);
      for (size_t i = 0; i < count; ++i) {
        const uint16_t lane = walking[i];
        run[lane] = Forward(run[lane]);
        walking[left] = lane;
        left += run[lane] >= size_;
      }
    }
    indexes = indexes.subspan(run.size());
  }
}

}  // namespace shardpack

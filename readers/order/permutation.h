// Permutation: a keyed shuffle of the numbers below n with random access and no table.
//
//   Permutation shuffle(50'000, MixKey(seed, epoch));
//   uint64_t id = shuffle.Map(7);            // the number at index 7
//   uint64_t index = shuffle.Inverse(id);    // 7 again
//
// A Feistel network over the next power of two (its halves differ by one bit if the exponent is
// odd), repeated until the result is below n (cycle walking: J. Black and P. Rogaway, "Ciphers with
// Arbitrary Finite Domains", 2002). The power is below 2n, so a walk takes fewer than two steps on
// average. Up to n = 16, where a network would favour some orders, it is a Fisher-Yates shuffle
// packed into one word. All arithmetic is our own, on 64-bit integers: the result of (n, key) is
// the same on every machine and in every version. Not cryptographically secure.
//
// Lifetime: a plain value of 100 bytes.
// Thread-safety: const, any thread.
// Errors: none; arguments must be below n.
// Units: indexes and values count from 0.
#ifndef SHARDPACK_READERS_ORDER_PERMUTATION_H_
#define SHARDPACK_READERS_ORDER_PERMUTATION_H_

#include <array>
#include <cstdint>
#include <span>

namespace shardpack {

// Combines a key with another number; changing one bit of it changes half of the result's bits (the
// finalizer of splitmix64, https://prng.di.unimi.it/splitmix64.c).
constexpr uint64_t MixKey(uint64_t key, uint64_t value) {
  uint64_t x = (key ^ value) + 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

class Permutation {
 public:
  static constexpr uint64_t kMaxSize = uint64_t{1} << 62;

  // 1 <= `size` <= kMaxSize.
  Permutation(uint64_t size, uint64_t key);

  uint64_t size() const { return size_; }
  uint64_t Map(uint64_t index) const;
  uint64_t Inverse(uint64_t value) const;
  // Replaces each index by its Map. Several times faster than single calls, because the walks of
  // many indexes overlap.
  void MapAll(std::span<uint64_t> indexes) const;

 private:
  // In pairs: the low half changes the high one, then the reverse. Six rounds pass the same quality
  // tests as a Fisher-Yates shuffle; four do not.
  static constexpr int kRounds = 8;

  uint64_t Forward(uint64_t x) const;
  uint64_t Backward(uint64_t x) const;

  uint64_t size_;
  uint64_t table_ = 0;  // used for a small size; the members below are for the network
  uint64_t low_mask_ = 0;
  uint8_t low_bits_ = 0, low_shift_ = 0, high_shift_ = 0;  // keep the top bits of 64
  std::array<uint64_t, kRounds> keys_ = {};
};

}  // namespace shardpack

#endif  // SHARDPACK_READERS_ORDER_PERMUTATION_H_

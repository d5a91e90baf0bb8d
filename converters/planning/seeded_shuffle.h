// SeededRandom: a sequence of random numbers that is the same on every machine, for reproducible
// orders.
//
//   SeededRandom random(seed, /*stream=*/kShuffleStream + split);
//   random.Shuffle(std::span(rows));
//   uint64_t dice = random.Below(6);
//
// std::mt19937_64 is fixed by the standard; std::shuffle and the distributions are not, so the
// bounded draw is implemented here: Lemire, "Fast Random Integer Generation in an Interval", 2019,
// unbiased.
//
// Thread-safety: one caller at a time.
#ifndef SHARDPACK_CONVERTERS_PLANNING_SEEDED_SHUFFLE_H_
#define SHARDPACK_CONVERTERS_PLANNING_SEEDED_SHUFFLE_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <utility>

namespace shardpack {

// Different uses of one seed draw from different streams. Part of the plan: never renumber.
enum class RandomStream : uint64_t {
  kShuffle = uint64_t{1} << 32,  // + number of the split
  kSplit = uint64_t{2} << 32,
  kStratified = uint64_t{3} << 32,  // + label
  kLimit = uint64_t{4} << 32,
};

class SeededRandom {
 public:
  SeededRandom(uint64_t seed, RandomStream stream, uint64_t number = 0)
      : engine_(Mix(Mix(seed) ^ (static_cast<uint64_t>(stream) + number))) {}

  // Uniform in [0, n); n > 0.
  uint64_t Below(uint64_t n) {
    unsigned __int128 product = static_cast<unsigned __int128>(engine_()) * n;
    if (static_cast<uint64_t>(product) < n) {
      const uint64_t threshold = -n % n;
      while (static_cast<uint64_t>(product) < threshold) {
        product = static_cast<unsigned __int128>(engine_()) * n;
      }
    }
    return static_cast<uint64_t>(product >> 64);
  }

  // Fisher-Yates.
  template <typename T>
  void Shuffle(std::span<T> items) {
    for (size_t left = items.size(); left > 1; --left) {
      std::swap(items[left - 1], items[Below(left)]);
    }
  }

 private:
  // splitmix64's finaliser: neighbouring seeds give unrelated sequences.
  static uint64_t Mix(uint64_t z) {
    z += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  std::mt19937_64 engine_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PLANNING_SEEDED_SHUFFLE_H_

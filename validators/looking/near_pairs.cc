#include "validators/looking/near_pairs.h"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

namespace shardpack {
namespace {

constexpr size_t kBands = 4, kBandBits = 16, kBuckets = size_t{1} << kBandBits;
constexpr size_t kBlock = 1024, kKeptPairs = 4096;

// Neighbouring frequencies go to different bands, so that the buckets are filled evenly.
uint64_t Spread(uint64_t hash) {
  uint64_t spread = 0;
  for (size_t bit = 0; bit < 64; ++bit)
    spread |= (hash >> bit & 1) << (bit % kBands * kBandBits + bit / kBands);
  return spread;
}

size_t BandOf(uint64_t spread, size_t band) {
  return spread >> (band * kBandBits) & (kBuckets - 1);
}

// The hashes in the order of the values of one band.
struct Buckets {
  std::vector<uint32_t> first;  // of each value; one more at the end
  std::vector<uint32_t> places;
  std::vector<uint64_t> hashes;  // at those places, beside each other for the search

  Buckets(const std::vector<uint64_t>& spread, size_t band)
      : first(kBuckets + 1), places(spread.size()), hashes(spread.size()) {
    for (const uint64_t each : spread) ++first[BandOf(each, band) + 1];
    for (size_t value = 0; value < kBuckets; ++value) first[value + 1] += first[value];
    std::vector<uint32_t> next(first.begin(), first.end() - 1);
    for (size_t i = 0; i < spread.size(); ++i) {
      const uint32_t at = next[BandOf(spread[i], band)]++;
      places[at] = static_cast<uint32_t>(i);
      hashes[at] = spread[i];
    }
  }
};

// All values of a band with at most `most` bits.
std::vector<uint32_t> Masks(int most) {
  std::vector<uint32_t> masks;
  for (uint32_t mask = 0; mask < kBuckets; ++mask) {
    if (std::popcount(mask) <= most) masks.push_back(mask);
  }
  return masks;
}

class Search {
 public:
  Search(std::span<const uint64_t> hashes, int distance) : distance_(distance) {
    spread_.reserve(hashes.size());
    for (const uint64_t hash : hashes) spread_.push_back(Spread(hash));
    // If each of the first distance % 4 + 1 bands differed in more than radius bits, and the others
    // in more than one less, the hashes would differ in more than `distance` bits.
    for (size_t band = 0; band < kBands; ++band) {
      radius_[band] = distance / static_cast<int>(kBands) -
                      (band > static_cast<size_t>(distance) % kBands ? 1 : 0);
      buckets_.emplace_back(spread_, band);
      masks_.push_back(Masks(radius_[band]));
    }
  }

  // Appends the pairs of hash `i` and those before it.
  void FindOf(uint32_t i, std::vector<NearPair>& pairs) const {
    for (size_t band = 0; band < kBands; ++band) {
      const Buckets& buckets = buckets_[band];
      for (const uint32_t mask : masks_[band]) {
        const size_t value = BandOf(spread_[i], band) ^ mask;
        for (uint32_t at = buckets.first[value]; at < buckets.first[value + 1]; ++at) {
          const uint32_t other = buckets.places[at];
          if (other >= i) break;  // places ascend within a bucket
          const uint64_t difference = spread_[i] ^ buckets.hashes[at];
          const int distance = std::popcount(difference);
          if (distance <= distance_ && !FoundBefore(difference, band))
            pairs.push_back({other, i, distance});
        }
      }
    }
  }

 private:
  // Whether a band before this one has found the pair.
  bool FoundBefore(uint64_t difference, size_t band) const {
    for (size_t before = 0; before < band; ++before) {
      if (std::popcount(BandOf(difference, before)) <= radius_[before]) return true;
    }
    return false;
  }

  const int distance_;
  std::vector<uint64_t> spread_;
  std::array<int, kBands> radius_ = {};  // -1: the band is not searched
  std::vector<Buckets> buckets_;
  std::vector<std::vector<uint32_t>> masks_;
};

}  // namespace

bool FindNearPairs(std::span<const uint64_t> hashes, int distance, const std::atomic<int>& stop,
                   const std::function<void(const NearPair&)>& found) {
  const Search search(hashes, distance);
  std::mutex mutex;
  const auto give = [&](std::vector<NearPair>& pairs) {
    const std::lock_guard lock(mutex);
    for (const NearPair& pair : pairs) found(pair);
    pairs.clear();
  };
  tbb::parallel_for(size_t{0}, (hashes.size() + kBlock - 1) / kBlock, [&](size_t block) {
    std::vector<NearPair> pairs;
    const size_t end = std::min(hashes.size(), (block + 1) * kBlock);
    for (size_t i = block * kBlock; i < end; ++i) {
      if (stop.load(std::memory_order_relaxed) != 0) return;
      search.FindOf(static_cast<uint32_t>(i), pairs);
      if (pairs.size() >= kKeptPairs) give(pairs);
    }
    give(pairs);
  });
  return stop.load() == 0;
}

}  // namespace shardpack

#include "converters/planning/shard_sizing.h"

#include <algorithm>
#include <numeric>

namespace shardpack {
namespace {

// starts[k] is the first sample from which the rest still fits into k shards.
std::vector<uint64_t> LatestStarts(std::span<const uint64_t> sums, uint64_t capacity_bytes) {
  std::vector<uint64_t> starts = {sums.size() - 1};
  while (starts.back() > 0) {
    const uint64_t end = starts.back();
    const uint64_t least = sums[end] > capacity_bytes ? sums[end] - capacity_bytes : 0;
    const auto first =
        std::lower_bound(sums.begin(), sums.begin() + static_cast<ptrdiff_t>(end), least);
    starts.push_back(std::min(static_cast<uint64_t>(first - sums.begin()), end - 1));
  }
  return starts;
}

}  // namespace

std::vector<uint64_t> CutByBytes(std::span<const uint64_t> sums, uint64_t capacity_bytes) {
  const uint64_t samples = sums.size() - 1;
  capacity_bytes =
      std::min(capacity_bytes, sums.back());  // so that adding it to a sum cannot overflow
  const std::vector<uint64_t> starts = LatestStarts(sums, capacity_bytes);
  std::vector<uint64_t> ends;
  uint64_t at = 0;
  for (uint64_t left = starts.size() - 1; left > 0; --left) {
    // The cut closest to an equal share of the rest, within what this shard and the remaining ones
    // can hold.
    const uint64_t share = sums[at] + (sums[samples] - sums[at]) / left;
    uint64_t end =
        static_cast<uint64_t>(std::lower_bound(sums.begin(), sums.end(), share) - sums.begin());
    if (end > at + 1 && end <= samples && share - sums[end - 1] < sums[end] - share) --end;
    const auto beyond = std::upper_bound(sums.begin() + static_cast<ptrdiff_t>(at), sums.end(),
                                         sums[at] + capacity_bytes);
    const uint64_t fits =
        std::max<uint64_t>(static_cast<uint64_t>(beyond - sums.begin()) - 1, at + 1);
    const uint64_t last = std::min(fits, samples - (left - 1));
    const uint64_t first = std::max(starts[left - 1], at + 1);
    at = std::clamp(end, first, last);
    ends.push_back(at);
  }
  return ends;
}

uint64_t AutomaticCapacity(std::span<const uint64_t> sums, uint64_t overhead_bytes) {
  constexpr uint64_t kLeast = 8'000'000, kMost = 256'000'000, kShards = 8;
  uint64_t largest = 0;
  for (size_t i = 1; i < sums.size(); ++i) largest = std::max(largest, sums[i] - sums[i - 1]);
  // With room for one more sample, eight shards hold everything, wherever the cuts are.
  return std::clamp((sums.back() - sums.front()) / kShards + largest, kLeast,
                    kMost - overhead_bytes);
}

std::vector<uint64_t> CutEvenly(uint64_t samples, uint64_t shards) {
  std::vector<uint64_t> ends;
  uint64_t at = 0;
  for (uint64_t i = 0; i < shards; ++i) {
    at += samples / shards + (i < samples % shards ? 1 : 0);
    ends.push_back(at);
  }
  return ends;
}

std::vector<uint64_t> DivideShards(uint64_t shards, std::span<const uint64_t> weights) {
  std::vector<uint64_t> parts(weights.size(), 1);
  // Gives one shard at a time to the group with the most weight per shard: exact in integers, and
  // groups are few.
  using Wide = unsigned __int128;
  const Wide total = std::accumulate(weights.begin(), weights.end(), Wide{0});
  uint64_t given = weights.size();
  for (size_t i = 0; i < weights.size() && total > 0; ++i) {
    const uint64_t share = static_cast<uint64_t>(Wide{shards} * weights[i] / total);
    if (share > 1) {
      given += share - 1;
      parts[i] = share;
    }
  }
  const auto most = [&](size_t a, size_t b) {
    return Wide{weights[a]} * parts[b] < Wide{weights[b]} * parts[a];
  };
  std::vector<size_t> groups(weights.size());
  std::iota(groups.begin(), groups.end(), size_t{0});
  for (; given < shards; ++given) ++parts[*std::max_element(groups.begin(), groups.end(), most)];
  while (given > shards) {
    // Raising groups to one shard exceeded the total: take shards back from the largest.
    --*std::max_element(parts.begin(), parts.end());
    --given;
  }
  return parts;
}

}  // namespace shardpack

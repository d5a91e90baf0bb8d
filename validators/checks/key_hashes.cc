#include "validators/checks/key_hashes.h"

#include <algorithm>
#include <bit>

#include "formats/io/bytes.h"
#include "formats/io/hash.h"

namespace shardpack {
namespace {

// Hashes per bucket: its table fits the first-level cache, which makes this several times faster
// than a sort.
constexpr size_t kBucketHashes = 1024;

}  // namespace

uint64_t HashKey(std::string_view key) {
  if (key.empty()) return 0;
  const uint64_t hash = Xxh3_64(AsBytes(key));
  return hash == 0 ? 1 : hash;
}

std::vector<uint64_t> RepeatedHashes(std::span<const std::span<const uint64_t>> shards,
                                     size_t limit) {
  size_t total = 0;
  for (const auto& hashes : shards) total += hashes.size();
  const int bits = std::bit_width(total / kBucketHashes);
  const auto bucket_of = [&](uint64_t hash) { return bits == 0 ? 0 : hash >> (64 - bits); };
  std::vector<size_t> ends((size_t{1} << bits) + 1, 0);
  for (const auto& hashes : shards) {
    for (const uint64_t hash : hashes) ++ends[bucket_of(hash) + 1];
  }
  for (size_t b = 1; b < ends.size(); ++b) ends[b] += ends[b - 1];
  std::vector<size_t> next(ends.begin(), ends.end() - 1);
  std::vector<uint64_t> sorted(total);
  for (const auto& hashes : shards) {
    for (const uint64_t hash : hashes) sorted[next[bucket_of(hash)]++] = hash;
  }
  std::vector<uint64_t> repeated, table;
  for (size_t b = 0; b + 1 < ends.size() && repeated.size() < limit; ++b) {
    const size_t size = ends[b + 1] - ends[b];
    const size_t mask = std::bit_ceil(size * 2 + 1) - 1;
    table.assign(mask + 1, 0);
    for (size_t i = ends[b]; i < ends[b + 1]; ++i) {
      const uint64_t hash = sorted[i];
      if (hash == 0) continue;
      size_t slot = hash & mask;
      while (table[slot] != 0 && table[slot] != hash) slot = (slot + 1) & mask;
      if (table[slot] == hash) repeated.push_back(hash);
      table[slot] = hash;
    }
  }
  std::sort(repeated.begin(), repeated.end());
  repeated.erase(std::unique(repeated.begin(), repeated.end()), repeated.end());
  if (repeated.size() > limit) repeated.resize(limit);
  return repeated;
}

}  // namespace shardpack

// Key hashes: finds the keys that a dataset has twice from 8 bytes a record.
//
//   uint64_t hash = HashKey("cat/1");
//   std::vector<uint64_t> twice = RepeatedHashes(hashes_of_shards, 1000);
//
// Equal hashes of different keys are possible (about one in 10^5 for ten million records): the
// caller compares the keys.
//
// Memory: 8 bytes a record more.
#ifndef SHARDPACK_VALIDATORS_CHECKS_KEY_HASHES_H_
#define SHARDPACK_VALIDATORS_CHECKS_KEY_HASHES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace shardpack {

// Never 0, which stands for "no key"; that of the empty key is 0.
uint64_t HashKey(std::string_view key);

// The hashes that come more than once, ascending, up to `limit` of them. Zeros do not count.
std::vector<uint64_t> RepeatedHashes(std::span<const std::span<const uint64_t>> shards,
                                     size_t limit);

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_CHECKS_KEY_HASHES_H_

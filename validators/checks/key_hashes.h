// Key hashes: find duplicate keys in a dataset, using 8 bytes per record.
//
//   uint64_t hash = HashKey("cat/1");
//   std::vector<uint64_t> twice = RepeatedHashes(hashes_of_shards, 1000);
//
// Different keys may have equal hashes (probability about 10^-5 for ten million records), so the
// caller compares the keys.
//
// Thread-safety: pure functions.
// Units: 8 more bytes of memory per record.
#ifndef SHARDPACK_VALIDATORS_CHECKS_KEY_HASHES_H_
#define SHARDPACK_VALIDATORS_CHECKS_KEY_HASHES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace shardpack {

// Never 0, which means "no key"; the hash of the empty key is 0.
uint64_t HashKey(std::string_view key);

// The hashes that occur more than once, ascending, at most `limit` of them. Zeros do not count.
std::vector<uint64_t> RepeatedHashes(std::span<const std::span<const uint64_t>> shards,
                                     size_t limit);

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_CHECKS_KEY_HASHES_H_

// How much space entries need in a B-tree that liblmdb fills in key order: upper bounds that hold
// for any entries before and after.
//
//   uint64_t most = EntryBound(key.size(), value_bytes, LmdbPageBytes());
//   uint64_t map_bytes = MapBytes(records, payload_bytes);
//
// Units: bytes.
#ifndef SHARDPACK_FORMATS_LMDB_MAP_SIZE_BOUND_H_
#define SHARDPACK_FORMATS_LMDB_MAP_SIZE_BOUND_H_

#include <cstddef>
#include <cstdint>

namespace shardpack {

// The page size of an environment made here: that of the operating system, within liblmdb's limits.
uint64_t LmdbPageBytes();

// Map sizes are multiples of this.
inline constexpr uint64_t kMapUnitBytes = 1 << 20;

// The largest node that is stored in its leaf; a larger value gets overflow pages of its own
// (LMDB/lmdb: libraries/liblmdb/mdb.c, me_nodemax: a page holds at least two nodes).
constexpr uint64_t MaxNodeBytes(uint64_t page_bytes) {
  return ((page_bytes - 16) / 2 & ~uint64_t{1}) - 2;
}
// The number of overflow pages of a value that is not stored in its leaf.
constexpr uint64_t OverflowPages(uint64_t value_bytes, uint64_t page_bytes) {
  return (value_bytes + 16 + page_bytes - 1) / page_bytes;
}
constexpr bool IsOverflow(uint64_t key_bytes, uint64_t value_bytes, uint64_t page_bytes) {
  return 8 + key_bytes + value_bytes > MaxNodeBytes(page_bytes);
}

// The most that a node of this size, including its two-byte pointer, adds to the leaf pages.
uint64_t LeafBound(uint64_t node_bytes, uint64_t page_bytes);
// The most that one entry adds to the environment: its node, its share of half-empty leaves and of
// branch pages, and its overflow pages.
uint64_t EntryBound(uint64_t key_bytes, uint64_t value_bytes, uint64_t page_bytes);

// What an environment needs in addition to its entries: two meta pages, the right edge of the tree,
// the free list, and the last pages of lists.
inline constexpr uint64_t kEnvironmentOverheadBytes = 16 << 12;

// The map size for this many records with this total payload. It is stored in the file, so it is
// close to the real size; an environment that needs more grows.
uint64_t MapBytes(uint64_t records, uint64_t payload_bytes);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_LMDB_MAP_SIZE_BOUND_H_

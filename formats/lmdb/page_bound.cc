#include "formats/lmdb/page_bound.h"

#include <unistd.h>

#include <algorithm>

namespace shardpack {

uint64_t LmdbPageBytes() {
  constexpr uint64_t kLargestPage = 0x8000;  // MAX_PAGESIZE of mdb.c
  static const uint64_t page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return std::min(page, kLargestPage);
}

uint64_t LeafBound(uint64_t node_bytes, uint64_t page_bytes) {
  return 2 * node_bytes * page_bytes / (page_bytes - 16) + 1;
}

uint64_t EntryBound(uint64_t key_bytes, uint64_t value_bytes, uint64_t page_bytes) {
  const bool overflow = IsOverflow(key_bytes, value_bytes, page_bytes);
  const uint64_t node_bytes = 8 + key_bytes + (overflow ? 8 : value_bytes);
  const uint64_t rounded = (node_bytes + 1) / 2 * 2 + 2;
  const uint64_t pages = overflow ? OverflowPages(value_bytes, page_bytes) : 0;
  const uint64_t branch_bytes = 4 * (key_bytes + 12);
  return LeafBound(rounded, page_bytes) + branch_bytes + pages * page_bytes;
}

uint64_t MapBytes(uint64_t records, uint64_t payload_bytes) {
  constexpr uint64_t kSlackBytes = 16 << 20, kLargeBytes = 1900, kPageBytes = 4096;
  const bool large = records > 0 && payload_bytes / records >= kLargeBytes;
  const uint64_t pages = large ? payload_bytes + records * (kPageBytes / 2 + 128)
                               : payload_bytes + payload_bytes / 4 + records * 96;
  const uint64_t wanted = pages + pages / 10 + kSlackBytes;
  return (wanted + kMapUnitBytes - 1) / kMapUnitBytes * kMapUnitBytes;
}

}  // namespace shardpack

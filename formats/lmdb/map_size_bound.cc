#include "formats/lmdb/map_size_bound.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>

namespace shardpack {
namespace {

// For nodes of `node_bytes` in 4096-byte pages: the bytes to add to their size, to pay for the
// space that is too small for the next node. Values between two rows are interpolated. No smaller
// values hold for all sequences: they solve the linear program whose conditions map_size_bound_test
// checks, for images of about a kilobyte.
struct Waste {
  uint16_t node_bytes, waste_bytes;
};
constexpr Waste kWaste[] = {
    {2, 3},       {40, 14},     {60, 21},     {90, 30},     {122, 40},    {182, 59},
    {240, 78},    {300, 97},    {340, 110},   {408, 131},   {510, 164},   {580, 186},
    {680, 218},   {740, 237},   {815, 261},   {860, 275},   {900, 288},   {940, 301},
    {975, 312},   {1000, 353},  {1020, 386},  {1060, 451},  {1100, 517},  {1156, 608},
    {1200, 680},  {1280, 811},  {1360, 942},  {1440, 1073}, {1500, 1171}, {1600, 1335},
    {1700, 1499}, {1800, 1662}, {1900, 1826}, {1980, 1958}, {2040, 2055},
};

// Each leaf costs one node of a branch page, with its first key. Branch pages are split in half by
// count, and the left halves stay as they are: half full, or a quarter full if the key lengths
// differ a lot. The cost of a leaf includes this for a key of kShortKeyBytes; longer keys pay the
// rest.
constexpr uint64_t kBranchTimes = 4, kBranchNodeBytes = 12, kShortKeyBytes = 36;
constexpr uint64_t kLeafInBranchBytes = kBranchTimes * (kBranchNodeBytes + kShortKeyBytes);

}  // namespace

uint64_t LmdbPageBytes() {
  constexpr uint64_t kMaxPage = 0x8000;  // MAX_PAGESIZE of mdb.c
  static const uint64_t page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return std::min(page, kMaxPage);
}

uint64_t LeafBound(uint64_t node_bytes, uint64_t page_bytes) {
  // A node begins a new leaf if the free space is smaller than the node, so twice its size pays for
  // both leaves. For 4096-byte pages the table is more precise.
  if (page_bytes != 4096) return 2 * node_bytes * page_bytes / (page_bytes - 16) + 1;
  const Waste* to =
      std::lower_bound(std::begin(kWaste) + 1, std::end(kWaste) - 1, node_bytes,
                       [](const Waste& row, uint64_t bytes) { return row.node_bytes < bytes; });
  const Waste& from = *(to - 1);
  const uint64_t run = to->node_bytes - from.node_bytes, rise = to->waste_bytes - from.waste_bytes;
  return node_bytes + from.waste_bytes + ((node_bytes - from.node_bytes) * rise + run - 1) / run;
}

uint64_t EntryBound(uint64_t key_bytes, uint64_t value_bytes, uint64_t page_bytes) {
  const bool overflow = IsOverflow(key_bytes, value_bytes, page_bytes);
  const uint64_t node_bytes = 8 + key_bytes + (overflow ? 8 : value_bytes);
  const uint64_t pages = overflow ? OverflowPages(value_bytes, page_bytes) : 0;
  const uint64_t leaf_bytes = LeafBound((node_bytes + 1) / 2 * 2 + 2, page_bytes);
  const uint64_t branch_bytes =
      (leaf_bytes * kLeafInBranchBytes + page_bytes - 1) / page_bytes +
      kBranchTimes * (std::max(key_bytes, kShortKeyBytes) - kShortKeyBytes);
  return leaf_bytes + branch_bytes + pages * page_bytes;
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

// FindSkip: looks up the skip of a row; skips are sorted by row, as in a listing.
//
//   if (FindSkip(listing.skips, row) != nullptr) continue;
//
// Thread-safety: pure.
#ifndef SHARDPACK_CONVERTERS_LISTING_FIND_SKIP_H_
#define SHARDPACK_CONVERTERS_LISTING_FIND_SKIP_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "converters/listing/skip.h"

namespace shardpack {

// The number of skips for rows before this one.
inline size_t SkipsBefore(std::span<const Skip> skips, uint64_t row) {
  const auto found = std::lower_bound(skips.begin(), skips.end(), row,
                                      [](const Skip& skip, uint64_t at) { return skip.row < at; });
  return static_cast<size_t>(found - skips.begin());
}

// Null if the row has none.
inline const Skip* FindSkip(std::span<const Skip> skips, uint64_t row) {
  const size_t place = SkipsBefore(skips, row);
  return place < skips.size() && skips[place].row == row ? &skips[place] : nullptr;
}

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_LISTING_FIND_SKIP_H_

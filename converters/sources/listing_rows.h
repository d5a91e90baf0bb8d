// TakeRows: turns a listing of a dataset into that of some of its rows, in any order.
//
//   TakeRows({2, 0}, listing);   // what was row 2 is row 0
//
// `places` of the listing then gives each row's record, as it did before, or the row itself if
// there were no places. Columns that are filled later (times, probes) must still be empty.
//
// Thread-safety: one caller.
#ifndef SHARDPACK_CONVERTERS_SOURCES_LISTING_ROWS_H_
#define SHARDPACK_CONVERTERS_SOURCES_LISTING_ROWS_H_

#include <cstdint>
#include <vector>

#include "converters/listing/listing.h"

namespace shardpack {

void TakeRows(const std::vector<uint64_t>& from, Listing& listing);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_LISTING_ROWS_H_

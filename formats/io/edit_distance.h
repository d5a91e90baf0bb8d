// EditDistance: how far one word is from another, to find what a user probably meant.
//
//   EditDistance("valdate", "Validate")  // 1
#ifndef SHARDPACK_FORMATS_IO_EDIT_DISTANCE_H_
#define SHARDPACK_FORMATS_IO_EDIT_DISTANCE_H_

#include <cstddef>
#include <string_view>

namespace shardpack {

// The number of insertions, deletions, substitutions and swaps of neighbours from one word to the
// other, ignoring case. Takes a.size() * b.size() steps.
size_t EditDistance(std::string_view a, std::string_view b);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_IO_EDIT_DISTANCE_H_

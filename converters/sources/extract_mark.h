// The mark that `pack extract` leaves in a folder until all files are there.
//
//   if (text.starts_with(kExtractMarkBegin)) ...  // of the file `.pack-extract`: files are missing
//
// Thread-safety: constants.
#ifndef SHARDPACK_CONVERTERS_SOURCES_EXTRACT_MARK_H_
#define SHARDPACK_CONVERTERS_SOURCES_EXTRACT_MARK_H_

#include <string_view>

namespace shardpack {

inline constexpr char kExtractMarkName[] = ".pack-extract";
// A file without this belongs to another program. The request follows.
inline constexpr std::string_view kExtractMarkBegin = "shardpack extract, version 1\n";

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_EXTRACT_MARK_H_

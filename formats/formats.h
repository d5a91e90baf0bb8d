// The table of formats: every byte layout that Shardpack packs, scans and validates.
//
//   const Format* format = FindFormat("tfrecord");                       // nullptr: no such format
//   absl::StatusOr<const Format*> found = SniffFormat("train-000000.tar");
//   for (const Format* each : AllFormats()) std::cout << each->name << ": " << each->doc << '\n';
//
// Adding a format is one row in formats.cc.
//
// Thread-safety: any thread.
// Errors: stated at each function.
#ifndef SHARDPACK_FORMATS_FORMATS_H_
#define SHARDPACK_FORMATS_FORMATS_H_

#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "formats/core/format.h"

namespace shardpack {

// In the order in which they are documented; the first is the default.
std::span<const Format* const> AllFormats();

// The format of that name; nullptr when there is none.
const Format* FindFormat(std::string_view name);

// The format of the shard at `path`, by its first bytes and then by its name; nullptr when it is
// none of ours. A folder is a shard when it holds the data file of a format. Status when the path
// cannot be read; InvalidArgument when it is neither a file nor a folder.
absl::StatusOr<const Format*> SniffFormat(const std::string& path);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_FORMATS_H_

// FindShard: finds the format that a file or folder is a shard of.
//
//   absl::StatusOr<FoundShard> shard = FindShard("train.lmdb", /*is_folder=*/true, formats);
//   if (shard.ok() && shard->format != nullptr) Scan(shard->data_path);   // train.lmdb/data.mdb
//
// Errors: those of opening and reading.
#ifndef SHARDPACK_FORMATS_CORE_FIND_SHARD_H_
#define SHARDPACK_FORMATS_CORE_FIND_SHARD_H_

#include <cstddef>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "formats/core/format.h"

namespace shardpack {

// The number of bytes that Format::sniff may look at.
inline constexpr size_t kSniffBytes = 1024;

struct FoundShard {
  const Format* format = nullptr;  // null: no format accepts it
  std::string data_path;           // the file itself, or the data file in the folder
};

// Goes by the first bytes, then by the name. `path` is a folder or a regular file; a folder is a
// shard if it contains the data file of a format.
absl::StatusOr<FoundShard> FindShard(const std::string& path, bool is_folder,
                                     std::span<const Format* const> formats);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_CORE_FIND_SHARD_H_

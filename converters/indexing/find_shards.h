// FindShards: finds the shards that `pack index` takes in, and decides the name and location that
// the manifest records for each.
//
//   absl::StatusOr<FoundShards> found = FindShards({"wds/"}, formats, {.out = "OUT"});
//   for (const FoundShard& shard : found->shards) ScanForeignShard(shard.path, formats);
//
// A path is a shard, or a folder whose shards are taken in order of name. A shard that lies in the
// dataset's folder keeps its name if a manifest can hold it; every other shard gets a location:
// relative to the dataset's folder if the two share a folder below the root, else absolute. An
// index is named by IndexName; if two shards would share that name, all of them use the whole name
// of their shard instead. In a location, links to folders are resolved, but a link to the shard
// itself is not.
//
// Thread-safety: pure except for the file system.
// Errors: InvalidArgument for what cannot be indexed; Unimplemented for a shard without extents;
// DataLoss for a damaged manifest in a given folder; I/O.
// Units: bytes.
#ifndef SHARDPACK_CONVERTERS_INDEXING_FIND_SHARDS_H_
#define SHARDPACK_CONVERTERS_INDEXING_FIND_SHARDS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/core/format.h"

namespace shardpack {

struct FoundShard {
  std::string path;       // as the user spelled it
  std::string data_path;  // the file that extents refer to
  uint64_t bytes = 0;     // of that file
  std::string name, split;
  std::string index_name;
  // Exactly one is set: the data file's name in the dataset's folder, or a manifest location.
  std::string file_name, location;
  // For a shard that is a folder and has a file_name: the other files in it, with names that a
  // manifest can hold, described the same way.
  std::vector<std::string> members = {};
};

struct FoundShards {
  const Format* format = nullptr;
  std::string out;             // the dataset's folder, which may not exist yet
  bool shards_in_out = false;  // at least one shard lies there
  std::vector<FoundShard> shards;
  std::vector<std::string>
      others;  // files in given folders that are not shards; only the first ones
  uint64_t other_files = 0;
  std::vector<std::string> hidden;  // names that begin with a dot, in given folders: left out
  bool splits_differ = false;       // only some names begin with a split, so all shards form one
};

struct FindShardsOptions {
  std::string out = {};    // empty: the folder that holds all shards
  std::string split = {};  // for all shards; empty: taken from their names
};

absl::StatusOr<FoundShards> FindShards(std::span<const std::string> paths,
                                       std::span<const Format* const> formats,
                                       const FindShardsOptions& options);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_INDEXING_FIND_SHARDS_H_

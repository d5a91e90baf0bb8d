// FindShards: which shards `pack index` takes in, what a manifest calls them, and where it
// says that they lie.
//
//   absl::StatusOr<FoundShards> found = FindShards({"wds/"}, formats, {.out = "OUT"});
//   for (const FoundShard& shard : found->shards) ScanForeignShard(shard.path, formats);
//
// A path is a shard, or a folder whose shards are taken in the order of their names. A shard that
// lies in the dataset's folder and whose name a manifest can hold keeps it; every other one gets a
// location: relative to the dataset's folder where both have a folder below the root in common,
// else absolute. An index has the name that IndexName makes, unless two shards would share one:
// then all of them keep the whole name of their shard. Links to folders are resolved in it, a link
// to the shard itself is not.
//
// Thread-safety: pure but for the file system.
// Errors: InvalidArgument for what cannot be adopted; Unimplemented for a shard without extents;
// DataLoss for a damaged manifest in a folder given; I/O.
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
  std::string path;       // as the user names it
  std::string data_path;  // the file that extents count in
  uint64_t bytes = 0;     // of that file
  std::string name, split;
  std::string index_name;
  // Just one of them: the data file's name in the dataset's folder, and a manifest's location.
  std::string file_name, location;
  // Of a shard that is a folder and has a file_name: the other files in it whose names a manifest
  // can hold, in the same way.
  std::vector<std::string> members = {};
};

struct FoundShards {
  const Format* format = nullptr;
  std::string out;             // the dataset's folder, which may not exist yet
  bool shards_in_out = false;  // at least one lies there
  std::vector<FoundShard> shards;
  std::vector<std::string> others;  // files in folders given that are no shards; the first of many
  uint64_t other_files = 0;
  std::vector<std::string> hidden;  // whose names begin with a dot, in folders given: left out
  bool splits_differ = false;       // some names begin with a split and some do not: all are in one
};

struct FindShardsOptions {
  std::string out = {};    // empty: the folder that all shards lie in
  std::string split = {};  // of all shards; empty: as their names say
};

absl::StatusOr<FoundShards> FindShards(std::span<const std::string> paths,
                                       std::span<const Format* const> formats,
                                       const FindShardsOptions& options);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_INDEXING_FIND_SHARDS_H_

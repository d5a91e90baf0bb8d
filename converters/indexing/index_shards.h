// IndexShards: turns third-party shards into a dataset where they lie, by writing indexes and a
// manifest.
//
//   IndexProgress progress;
//   absl::StatusOr<IndexReport> report = IndexShards(paths, formats, options, progress, stop);
//   std::cout << IdentityText(report->manifest.Identity());
//
// Every shard is read once, from start to end, several in parallel; nothing is published unless all
// of them are intact. Keys, labels and fields are taken as they are; facts from the image headers
// go into the indexes. If the same dataset is already there, nothing is written.
//
// Lifetime: borrows all arguments for the call.
// Thread-safety: one call per folder at a time.
// Errors: InvalidArgument = usage (exit 2); Unimplemented = shards without extents (2); DataLoss =
// damage, reported for the first damaged shards (4); FailedPrecondition = conflict (5); Cancelled =
// stopped; I/O (6).
// Memory: 8 bytes per record; per thread, the index and the largest image of a shard.
// Units: bytes.
#ifndef SHARDPACK_CONVERTERS_INDEXING_INDEX_SHARDS_H_
#define SHARDPACK_CONVERTERS_INDEXING_INDEX_SHARDS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/core/format.h"
#include "formats/core/manifest.h"

namespace shardpack {

struct IndexOptions {
  std::string out = {};  // empty: the folder that holds all shards
  // For all shards; empty: from manifests beside them, else from their names.
  std::string split = {};
  // Names of the labels 0, 1, ...; empty: from manifests beside the shards, else no names.
  std::vector<std::string> classes = {};
  int jobs = 0;            // shards in parallel; 0 = the cores this process may use
  bool overwrite = false;  // replace the manifest and the indexes of an indexed dataset
  bool fsync = true;
  std::map<std::string, std::string> tool = {};  // for the manifest: version, commit, libraries
};

// Written by the call, read to show progress; counts only grow.
struct IndexProgress {
  std::atomic<uint64_t> total_bytes{0}, done_bytes{0};
  std::atomic<uint64_t> total_shards{0}, done_shards{0};
};

struct IndexReport {
  Manifest manifest;
  std::string out;
  bool unchanged = false;             // the dataset was already there; nothing was written
  std::vector<std::string> warnings;  // one sentence each; empty if unchanged
  std::vector<std::string> kept;      // files in the folder's `.pack` that pack did not make
  std::vector<std::string> others;    // files in given folders that are not shards; the first 1000
  uint64_t other_files = 0;           // total count of `others`
  std::vector<std::string> hidden;    // hidden entries in given folders, always left out
};

// Set `stop` to a signal's number to end the call soon.
absl::StatusOr<IndexReport> IndexShards(std::span<const std::string> paths,
                                        std::span<const Format* const> formats,
                                        const IndexOptions& options, IndexProgress& progress,
                                        const std::atomic<int>& stop);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_INDEXING_INDEX_SHARDS_H_

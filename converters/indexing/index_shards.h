// IndexShards: makes shards of other tools a dataset where they lie: indexes, and a manifest that
// says so.
//
//   IndexProgress progress;
//   absl::StatusOr<IndexReport> report = IndexShards(paths, formats, options, progress, stop);
//   std::cout << IdentityText(report->manifest.Identity());
//
// Every shard is read once, from its first byte to its last, several at a time; nothing is
// published unless all of them are whole. Keys, labels and fields are taken as they are; what the
// images' headers say goes to the indexes. Where the same dataset is already, nothing is written.
//
// Lifetime: borrows all arguments for the call.
// Thread-safety: one call a folder.
// Errors: InvalidArgument = usage (exit 2); Unimplemented = shards without extents (2); DataLoss =
// damage, of the first shards that have some (4); FailedPrecondition = conflict (5); Cancelled =
// stopped; I/O (6).
// Memory: 8 bytes a record, and the index and the largest image of a shard a thread.
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
  std::string out = {};  // empty: the folder that all shards lie in
  // Of all shards; empty: as manifests beside them say, or else their names.
  std::string split = {};
  // Names of the labels 0, 1, ...; empty: as manifests beside them say, or they have none.
  std::vector<std::string> classes = {};
  int jobs = 0;            // shards at a time; 0 = the cores this process may use
  bool overwrite = false;  // the manifest and the indexes of an adopted dataset
  bool fsync = true;
  std::map<std::string, std::string> tool = {};  // for the manifest: version, commit, libraries
};

// Written by the call, read by whoever shows progress; counts only grow.
struct IndexProgress {
  std::atomic<uint64_t> total_bytes{0}, done_bytes{0};
  std::atomic<uint64_t> total_shards{0}, done_shards{0};
};

struct IndexReport {
  Manifest manifest;
  std::string out;
  bool unchanged = false;             // the dataset was there, and nothing was written
  std::vector<std::string> warnings;  // one sentence each; not where unchanged
  std::vector<std::string> kept;      // in `.pack` of the folder, not made by pack
  std::vector<std::string> others;    // files in folders given that are no shards; the first 1000
  uint64_t other_files = 0;           // of these
  std::vector<std::string> hidden;    // in folders given, and left out whatever they are
};

// `stop` becomes non-zero when the call shall end soon (a signal's number).
absl::StatusOr<IndexReport> IndexShards(std::span<const std::string> paths,
                                        std::span<const Format* const> formats,
                                        const IndexOptions& options, IndexProgress& progress,
                                        const std::atomic<int>& stop);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_INDEXING_INDEX_SHARDS_H_

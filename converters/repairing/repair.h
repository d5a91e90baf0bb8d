// RepairDataset: restores a damaged dataset byte for byte (`pack repair`).
//
//   std::vector<RepairSource> sources;  // folders, copies in any format, ways to plan again
//   absl::StatusOr<RepairReport> report =
//       RepairDataset("OUT", manifest, sources, format, options, pool, progress, stop);
//   for (const RepairedFile& file : report->files) if (!file.whole()) Say(file.name, file.why_not);
//
// A shard is a function of its index, its spec and the bytes of its fields. So a shard with an
// intact index is rewritten from any source of bytes with the right hashes: the damaged shard
// itself, other shards, copies, the source. A lost index is made by scanning its shard; what the
// scan cannot show comes from a copy. If both are lost, the records come from a copy, in the order
// of the plan, or the plan is made again from the source. In every case a file is published only if
// it has the size and XXH3-128 of the manifest; otherwise it is left as it is.
//
// Lifetime: borrows all arguments for the call.
// Thread-safety: one call per dataset; others fail with FailedPrecondition.
// Errors: InvalidArgument for names that the dataset does not have; FailedPrecondition (exit 5)
// when another run works there; I/O on OUT (6), Cancelled: what is already published stays, and
// repeating the call continues. A file that cannot be rebuilt is reported, not an error.
// Units: bytes.
#ifndef SHARDPACK_CONVERTERS_REPAIRING_REPAIR_H_
#define SHARDPACK_CONVERTERS_REPAIRING_REPAIR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "converters/listing/sample_source.h"
#include "converters/planning/plan.h"
#include "converters/repairing/dataset_copy.h"
#include "converters/threads/io_pool.h"
#include "formats/core/format.h"
#include "formats/core/manifest.h"

namespace shardpack {

struct Replanned {
  std::unique_ptr<SampleSource> source;
  Plan plan;
  std::string unrecorded = {};  // a sentence about options that the manifest may lack; "" = none
};

// A source for lost bytes.
struct RepairSource {
  std::string name;  // for the report
  std::optional<DatasetCopy> copy = std::nullopt;
  std::string folder = {};  // holds files under their source paths; empty: none
  std::function<absl::StatusOr<Replanned>()> replan =
      nullptr;  // makes the plan again from this source and the manifest's options
};

struct RepairOptions {
  std::vector<std::string> only = {};  // names of shards or files to check; empty: all
  std::set<std::string> whole = {};  // files that this run has already hashed: see RestoredManifest
  bool full = true;                  // false: files of the right size count as whole
  bool dry_run = false;              // write nothing; report what would be done
  bool fsync = true;
  int jobs = 0;               // CPU threads; 0 = the cores this process may use
  uint64_t memory_bytes = 0;  // see BuildOptions
};

// Written by the call, read to show progress.
struct RepairProgress {
  std::atomic<uint64_t> total_files{0}, done_files{0}, done_bytes{0}, total_bytes{0};
  std::atomic<uint64_t> damaged{0}, repaired{0};
};

struct RepairedFile {
  std::string name;
  uint64_t bytes = 0;
  std::string damage;   // what was wrong with it
  std::string from;     // what it was (with dry_run: would be) rebuilt from; empty: it was not
  std::string why_not;  // the reason, if it was not rebuilt
  bool whole() const { return !from.empty(); }
};

struct RepairReport {
  std::vector<RepairedFile> files;  // the damaged files, in manifest order
  uint64_t looked_at = 0;           // number of files checked
  uint64_t hashed_bytes = 0;
  std::string notice = {};  // text for the user: see OutputDir::FinishPublished
  bool all_whole() const {
    for (const RepairedFile& file : files) {
      if (!file.whole()) return false;
    }
    return true;
  }
};

// `format` is that of the manifest; `formats` are all known ones. Set `stop` to non-zero to end the
// call soon.
absl::StatusOr<RepairReport> RepairDataset(const std::string& out, const Manifest& manifest,
                                           std::span<RepairSource> sources, const Format& format,
                                           const RepairOptions& options, IoPool& pool,
                                           RepairProgress& progress, const std::atomic<int>& stop);

// Whether the folder's manifest.json is one of ours, or the remains of one; other programs write
// files of that name too.
absl::StatusOr<bool> HoldsManifest(const std::string& folder);

struct RestoredManifest {
  Manifest manifest;
  std::set<std::string> whole;  // shard files that were hashed to prove that the manifest is OUT's
};

// Replaces a damaged or missing manifest with that of a copy, if OUT holds every shard that it
// lists, byte for byte, or if its identity is `expect`: then it is the same dataset.
// FailedPrecondition otherwise, or when the indexes prove that OUT holds shards of another dataset,
// when a build or `pack index` has not finished there, or when OUT's manifest.json is intact or not
// ours. With `dry_run` only returns the manifest.
absl::StatusOr<RestoredManifest> RestoreManifest(const std::string& out, const std::string& copy,
                                                 const std::optional<Digest>& expect,
                                                 const RepairOptions& options,
                                                 RepairProgress& progress,
                                                 const std::atomic<int>& stop);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_REPAIRING_REPAIR_H_

// RepairDataset: makes a damaged dataset whole again, byte for byte: `pack repair`.
//
//   std::vector<RepairSource> sources;   // a folder, a copy in any format, a way to plan again; or several of them
//   absl::StatusOr<RepairReport> report = RepairDataset("OUT", manifest, sources, format, options, pool, progress, stop);
//   for (const RepairedFile& file : report->files) if (!file.whole()) Say(file.name, file.why_not);
//
// A shard is a function of its index, its spec and its fields' bytes. So a shard whose index is
// whole is written from whatever has bytes of the right hashes: the damaged shard itself, other
// shards, copies, the source. An index is made by scanning its shard, what the scan does not tell
// comes from a copy. Where both are lost, a copy in the order of the plan tells the records, or the
// plan is made again from the source. Whatever way: a file is published when it has the size and
// XXH3-128 of the manifest, else it is left as it is.
//
// Lifetime: borrows all arguments for the call.
// Thread-safety: one call a dataset; others end in FailedPrecondition.
// Errors: InvalidArgument for names that the dataset does not have; FailedPrecondition (exit 5)
// when another run works there; I/O on OUT (6), Cancelled: what was published by then stays, and
// the same call goes on. What cannot be rebuilt is data, not an error.
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
  std::string unrecorded = {};  // a sentence on options that the manifest may lack; "" = none
};

// Where lost bytes may come from.
struct RepairSource {
  std::string name;  // for the report
  std::optional<DatasetCopy> copy = std::nullopt;
  std::string folder = {};  // files lie there under their source paths; empty: none
  std::function<absl::StatusOr<Replanned>()> replan =
      nullptr;  // from this source and the manifest's options
};

struct RepairOptions {
  std::vector<std::string> only = {};  // names of shards or files to look at; empty: all
  std::set<std::string> whole = {};    // files that this run has hashed: see RestoredManifest
  bool full = true;                    // false: files of the right size count as whole
  bool dry_run = false;                // nothing is written; what would be
  bool fsync = true;
  int jobs = 0;               // computing threads; 0 = the cores this process may use
  uint64_t memory_bytes = 0;  // see BuildOptions
};

// Written by the call, read by whoever shows progress.
struct RepairProgress {
  std::atomic<uint64_t> total_files{0}, done_files{0}, done_bytes{0}, total_bytes{0};
  std::atomic<uint64_t> damaged{0}, repaired{0};
};

struct RepairedFile {
  std::string name;
  uint64_t bytes = 0;
  std::string damage;   // what was wrong with it
  std::string from;     // where it was, or with dry_run would be, rebuilt from; empty: it was not
  std::string why_not;  // then why not
  bool whole() const { return !from.empty(); }
};

struct RepairReport {
  std::vector<RepairedFile> files;  // the damaged ones, in the order of the manifest's files
  uint64_t looked_at = 0;           // files
  uint64_t hashed_bytes = 0;
  std::string notice = {};  // what the user has to be told: see OutputDir::FinishPublished
  bool all_whole() const {
    for (const RepairedFile& file : files) {
      if (!file.whole()) return false;
    }
    return true;
  }
};

// `format` is that of the manifest, `formats` all there are. `stop` becomes non-zero when the call
// shall end soon.
absl::StatusOr<RepairReport> RepairDataset(const std::string& out, const Manifest& manifest,
                                           std::span<RepairSource> sources, const Format& format,
                                           const RepairOptions& options, IoPool& pool,
                                           RepairProgress& progress, const std::atomic<int>& stop);

// Whether the folder's manifest.json is one of ours, or what is left of one; other programs write
// files of that name too.
absl::StatusOr<bool> HoldsManifest(const std::string& folder);

struct RestoredManifest {
  Manifest manifest;
  std::set<std::string> whole;  // the shards' files that were hashed to prove that it is OUT's
};

// Puts the manifest of a copy in the place of one that is damaged or missing, when OUT holds every
// shard that it lists, byte for byte, or when it has the identity `expect`: then it is the same
// dataset. FailedPrecondition when it is not, or when OUT holds shards of another dataset, which
// their indexes prove; when a build or pack index has not finished there, or when OUT has a
// manifest.json that is whole or not ours. With `dry_run` only answers the manifest.
absl::StatusOr<RestoredManifest> RestoreManifest(const std::string& out, const std::string& copy,
                                                 const std::optional<Digest>& expect,
                                                 const RepairOptions& options,
                                                 RepairProgress& progress,
                                                 const std::atomic<int>& stop);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_REPAIRING_REPAIR_H_

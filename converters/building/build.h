// Build: packs the shards of a plan, in parallel and in any order, with the same bytes every time,
// then commits.
//
//   BuildProgress progress;
//   absl::StatusOr<RunReport> report = Build(plan, source, BuildOptions{.out = "OUT"}, pool, progress, stop);
//   std::cout << IdentityText(report->manifest.Identity());
//
// A shard depends on plan, number and source bytes alone; every input is accounted for; the
// manifest comes last.
//
// Lifetime: borrows all arguments for the call.
// Thread-safety: one build for each OUT.
// Errors: InvalidArgument = usage (exit 2); DataLoss = damage or more bad inputs than allowed (4);
// FailedPrecondition = conflict (5); Aborted = others hold what is left (7); ResourceExhausted,
// Unavailable and other I/O = 6, resumable; Cancelled = stopped by a signal, resumable. Exceptions
// of source, writers and libraries become a status: ResourceExhausted for a lack of memory or
// threads, else Internal.
// Units: bytes, seconds.
#ifndef SHARDPACK_CONVERTERS_BUILDING_BUILD_H_
#define SHARDPACK_CONVERTERS_BUILDING_BUILD_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "converters/listing/sample_source.h"
#include "converters/planning/plan.h"
#include "converters/publishing/output_dir.h"
#include "converters/threads/io_pool.h"
#include "formats/core/manifest.h"

namespace shardpack {

struct BuildOptions {
  std::string out;
  int jobs = 0;               // computing threads; 0 = the cores this process may use
  uint64_t memory_bytes = 0;  // ceiling for samples in flight; 0 = a quarter of the memory
  OutputOptions output;
  double max_skip = 0.01;  // share of seen inputs that may be skipped or failed; 0 with --strict
  std::map<std::string, std::string> tool;  // for the manifest: version, commit, linked libraries
  bool plan_is_given = false;               // see CommitOptions
  std::optional<Digest> expect;             // identity that the result must have
};

// Written by the build, read to show progress. Counts only grow, gauges go up and down; after an
// exception they stay as they are.
struct BuildProgress {
  std::atomic<uint64_t> total_rows{0}, done_rows{0}, skipped_rows{0};
  std::atomic<uint64_t> bytes_in{0}, bytes_out{0};
  std::atomic<uint64_t> total_shards{0}, done_shards{0}, kept_shards{0};
  // Gauges: chunks being read, chunks in or waiting for computation, shards being verified; bytes
  // of samples in memory.
  std::atomic<int64_t> reading{0}, computing{0}, verifying{0};
  std::atomic<int64_t> memory_bytes{0};
  // The run builds, or has built, beside OUT in a folder of its own, which it has locked.
  std::atomic<bool> replacing{false};
  // The folder that the run built in is gone, and with it what it has built.
  std::atomic<bool> removed{false};
};

struct RunReport {
  Manifest manifest;         // empty for a worker's part
  uint64_t kept_shards = 0;  // taken over from an interrupted run
  uint64_t built_shards = 0;
  uint64_t others_shards = 0;     // finished by other workers meanwhile
  bool already_complete = false;  // there was nothing to do
  bool compared = false;          // then: with every byte of the source
  std::string notice = {};        // what the user has to be told: see OutputDir::FinishPublished
  // Aborted, if a worker that does not wait has left shards to others that hold them.
  absl::Status held = absl::OkStatus();
  // By row, and not when already complete: all of the dataset, or those of the shards that this
  // worker has built.
  std::vector<Skip> skips;
};

// `stop`: set to a signal's number to end the run soon.
absl::StatusOr<RunReport> Build(const Plan& plan, const SampleSource& source,
                                const BuildOptions& options, IoPool& pool, BuildProgress& progress,
                                const std::atomic<int>& stop);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_BUILDING_BUILD_H_

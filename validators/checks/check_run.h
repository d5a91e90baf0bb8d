// CheckRun: the state that all checks of a validation share: depth, stop flag, progress.
// ShardOutcome: the result of checking one shard.
//
//   in.OnBlock([&](uint64_t bytes) { return run.Advance(bytes); });
//   if (run.Stopped()) return;
//   outcome.findings.Report(MakeFinding(FindingId::kFileHash, name));
//
// Lifetime: borrows progress, stop flag and gates.
// Thread-safety: Advance and Stopped from any thread; a ShardOutcome has one writer.
// Errors: Advance returns Cancelled when the run must stop.
// Units: bytes, seconds.
#ifndef SHARDPACK_VALIDATORS_CHECKS_CHECK_RUN_H_
#define SHARDPACK_VALIDATORS_CHECKS_CHECK_RUN_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "images/codecs/inspect.h"
#include "validators/checks/memory_gate.h"
#include "validators/checks/source_check.h"
#include "validators/report/finding_tally.h"
#include "validators/report/validation_report.h"

namespace shardpack {

// Written by the validation and read by the progress display. Counts only grow.
struct ValidationProgress {
  std::atomic<uint64_t> total_bytes{0}, done_bytes{0};
  std::atomic<uint64_t> total_shards{0}, done_shards{0};
  std::atomic<uint64_t> findings{0};
};

struct CheckRun {
  ValidationLevel level = ValidationLevel::kFull;
  double sample_percent = 100;
  const SourceParts& against_parts;
  const SourceOpener& open_source;  // null: no source to compare with
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  ImageLimits image_limits = {};
  ValidationProgress& progress;
  const std::atomic<int>& stop;
  MemoryGates& gates;  // limit the images being decoded

  bool Stopped() const {
    return stop.load(std::memory_order_relaxed) != 0 || std::chrono::steady_clock::now() > deadline;
  }
  absl::Status Advance(uint64_t bytes) const {
    progress.done_bytes.fetch_add(bytes, std::memory_order_relaxed);
    return Stopped() ? absl::CancelledError("stopped") : absl::OkStatus();
  }
};

struct ShardOutcome {
  FindingTally findings;
  std::string format;               // found or expected
  uint64_t bytes = 0, records = 0;  // of the whole shard, as far as known
  uint64_t bytes_read = 0, records_checked = 0, sources_compared = 0;
  // At level deep: images checked, images whose every pixel was decoded, and images with more than
  // one frame.
  uint64_t images_checked = 0, images_decoded = 0, animated = 0;
  uint64_t unlabelled = 0;  // of a shard without an index: records without a label
  bool complete = false;    // checked everything that the level requires
  // By record; 0 = no key. Only these 8 bytes per record are kept.
  std::vector<uint64_t> key_hashes;
  std::vector<std::string> not_checked;
};

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_CHECKS_CHECK_RUN_H_

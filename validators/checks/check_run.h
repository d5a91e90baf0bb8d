// CheckRun: what all checks of one validation share: how deep to look, when to stop, who is told of
// the progress. ShardOutcome: what the check of one shard says.
//
//   in.OnBlock([&](uint64_t bytes) { return run.Advance(bytes); });
//   if (run.Stopped()) return;
//   outcome.findings.Report(MakeFinding(FindingId::kFileHash, name));
//
// Lifetime: borrows progress, stop flag and gates.
// Thread-safety: Advance and Stopped from any thread; a ShardOutcome has one writer.
// Errors: Advance answers Cancelled when the run shall end.
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

// Written by the validation, read by whoever shows progress. Counts only grow.
struct ValidationProgress {
  std::atomic<uint64_t> total_bytes{0}, done_bytes{0};
  std::atomic<uint64_t> total_shards{0}, done_shards{0};
  std::atomic<uint64_t> findings{0};
};

struct CheckRun {
  ValidationLevel level = ValidationLevel::kFull;
  double sample_percent = 100;
  const SourceParts& against_parts;
  const SourceOpener& open_source;  // null: nothing to compare with
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  ImageLimits image_limits = {};
  ValidationProgress& progress;
  const std::atomic<int>& stop;
  MemoryGates& gates;  // of images being decoded

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
  // At level deep: images that were looked at, those of them whose every pixel was decoded, and
  // those of more than one frame.
  uint64_t images_checked = 0, images_decoded = 0, animated = 0;
  bool complete = false;             // checked to the end of what the level asks for
  std::vector<uint64_t> key_hashes;  // by record; 0 = no key. 8 bytes a record is all that is kept.
  std::vector<std::string> not_checked;
};

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_CHECKS_CHECK_RUN_H_

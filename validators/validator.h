// Validator: proves a dataset, or shards of other tools, byte by byte, and says what it found and
// what it left out.
//
//   ValidationProgress progress;
//   auto report = ValidateDataset("OUT", AllFormats(), options, progress, stop);
//   if (report.ok() && report->errors() > 0) ...   // exit code 4
//
// Nothing is written, and nothing of the input is trusted: any bytes give findings, never a crash.
//
// Lifetime: borrows all arguments for the call.
// Thread-safety: any number at once.
// Errors: damage is a finding, and so is a file that cannot be read; Status means that there was
// nothing to validate: NotFound, InvalidArgument (both usage), PermissionDenied and other I/O for
// the folder itself. A stop is no error: the report says so.
// Memory: 8 bytes a record, and a block, an index and the largest record's metadata a thread; at
// deep what MemoryGates let through.
// Units: bytes, seconds.
#ifndef SHARDPACK_VALIDATORS_VALIDATOR_H_
#define SHARDPACK_VALIDATORS_VALIDATOR_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "formats/core/format.h"
#include "formats/io/hash.h"
#include "images/codecs/inspect.h"
#include "validators/checks/check_run.h"
#include "validators/checks/source_check.h"
#include "validators/checks/unpacked_check.h"
#include "validators/report/validation_report.h"

namespace shardpack {

struct ValidateOptions {
  ValidationLevel level = ValidationLevel::kFull;
  int jobs = 0;  // shards at a time; 0 = the cores this process may use
  // Of the shards in order, those whose number leaves subset_index when divided by subset_count.
  uint32_t subset_index = 0, subset_count = 1;
  // At full and deep, a fixed choice of the records of each shard; of foreign shards, which have no
  // index, of the shards.
  double sample_percent = 100;
  double max_seconds = 0;                       // 0 = no limit
  std::optional<Digest> expect = std::nullopt;  // identity that the dataset must have
  // The source files to compare with; null = none.
  SourceOpener open_source = nullptr;
  SourceParts against_parts = {};
  // The inputs in the source that a build with the manifest's options would take; null = not known.
  SourceVisit visit_source = nullptr;
  ImageLimits image_limits = {};  // at deep
};

// `dataset` is a folder with manifest.json, or one that a build has left without it.
absl::StatusOr<ValidationReport> ValidateDataset(const std::string& dataset,
                                                 std::span<const Format* const> formats,
                                                 const ValidateOptions& options,
                                                 ValidationProgress& progress,
                                                 const std::atomic<int>& stop);

// Shards without manifest and index. InvalidArgument with --expect or --against, which need these.
absl::StatusOr<ValidationReport> ValidateShards(std::span<const std::string> shard_paths,
                                                std::span<const Format* const> formats,
                                                const ValidateOptions& options,
                                                ValidationProgress& progress,
                                                const std::atomic<int>& stop);

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_VALIDATOR_H_

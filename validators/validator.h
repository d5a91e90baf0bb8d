// ValidateDataset: verifies a dataset, or third-party shards, byte by byte, and reports what it
// found and what it left out.
//
//   ValidationProgress progress;
//   auto report = ValidateDataset("OUT", AllFormats(), options, progress, stop);
//   if (report.ok() && report->errors() > 0) ...   // exit code 4
//
// Writes nothing and trusts no input: arbitrary bytes produce findings, never a crash.
//
// Lifetime: borrows all arguments during the call.
// Thread-safety: any number of calls concurrently.
// Errors: damage and unreadable files are findings. Status: there was nothing to validate:
// NotFound, InvalidArgument (both usage), PermissionDenied and other I/O errors for the folder
// itself. A stop is not an error; the report records it.
// Memory: 8 bytes per record; per thread a block, an index and the largest record's metadata; at
// deep, also what MemoryGates allow.
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
  int jobs = 0;  // concurrent shards; 0 = the cores this process may use
  // Checks the shards whose number modulo subset_count is subset_index.
  uint32_t subset_index = 0, subset_count = 1;
  // At full and deep: a fixed selection of this share of each shard's records; for foreign shards,
  // which have no index, of the shards.
  double sample_percent = 100;
  double max_seconds = 0;                       // 0 = no limit
  std::optional<Digest> expect = std::nullopt;  // the identity that the dataset must have
  // Opens the source files to compare with; null = none.
  SourceOpener open_source = nullptr;
  SourceParts against_parts = {};
  // Visits the inputs that a build with the manifest's options would take from the source; null =
  // unknown.
  SourceVisit visit_source = nullptr;
  ImageLimits image_limits = {};  // at deep
};

// `dataset` is a folder with manifest.json, or one that an interrupted build left without it.
absl::StatusOr<ValidationReport> ValidateDataset(const std::string& dataset,
                                                 std::span<const Format* const> formats,
                                                 const ValidateOptions& options,
                                                 ValidationProgress& progress,
                                                 const std::atomic<int>& stop);

// Validates shards by themselves, and their bytes against the manifests that lie beside them.
// InvalidArgument with --expect or --against, which
// require these.
absl::StatusOr<ValidationReport> ValidateShards(std::span<const std::string> shard_paths,
                                                std::span<const Format* const> formats,
                                                const ValidateOptions& options,
                                                ValidationProgress& progress,
                                                const std::atomic<int>& stop);

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_VALIDATOR_H_

// ReadSkippedList: the inputs that a build left out, as skipped.jsonl beside the manifest lists
// them.
//
//   absl::StatusOr<SkippedList> skipped = ReadSkippedList("OUT", manifest);
//   for (const auto& [reason, count] : skipped->by_reason) ...
//
// Lifetime: owns its text.
// Thread-safety: any thread.
// Errors: DataLoss for a file that the manifest does not describe; I/O errors.
// Memory: the file, while it is read.
#ifndef SHARDPACK_VALIDATORS_LOOKING_SKIPPED_LIST_H_
#define SHARDPACK_VALIDATORS_LOOKING_SKIPPED_LIST_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/core/manifest.h"

namespace shardpack {

struct SkippedInput {
  std::string path, reason, detail;  // the bytes of the names, not escaped
};

struct SkippedList {
  uint64_t count = 0;
  std::map<std::string, uint64_t> by_reason;
  std::vector<SkippedInput> first;  // of each reason, in the order of the list
  static constexpr size_t kMostOfAReason = 100, kMostReasons = 100;
};

// Empty if the dataset has no such file.
absl::StatusOr<SkippedList> ReadSkippedList(const std::string& dataset, const Manifest& manifest);

// The text of the file; any other line counts with the reason "unknown".
SkippedList ParseSkippedList(std::string_view text);

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_LOOKING_SKIPPED_LIST_H_

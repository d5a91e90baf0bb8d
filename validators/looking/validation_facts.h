// ValidationFacts: the result of a validation, read from what `pack validate --json` printed.
//
//   absl::StatusOr<ValidationFacts> facts = ParseValidation(json);
//   if (facts->errors > 0) ...
//
// Lifetime: owns its text.
// Thread-safety: pure.
// Errors: InvalidArgument for text that is not such a result.
#ifndef SHARDPACK_VALIDATORS_LOOKING_VALIDATION_FACTS_H_
#define SHARDPACK_VALIDATORS_LOOKING_VALIDATION_FACTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace shardpack {

struct ValidationFacts {
  struct Line {
    std::string severity, id, message, shard, key;
  };
  std::string level, identity;  // of the dataset that was validated; empty if it has none
  uint64_t errors = 0, warnings = 0;
  uint64_t records = 0, records_checked = 0;
  std::vector<std::string> not_checked;
  std::vector<Line> findings;  // the first ones
  static constexpr size_t kMostFindings = 50;
};

absl::StatusOr<ValidationFacts> ParseValidation(std::string_view json);

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_LOOKING_VALIDATION_FACTS_H_

// ClassGaps: finds problems for training: classes without any packed sample, and classes that are
// in another split but not in `train`.
//
//   ASSIGN_OR_RETURN(const std::vector<std::string> lines, ClassGaps(plan, report.skips));
//   for (const std::string& line : lines) Warn(line);
//
// Thread-safety: pure.
// Errors: DataLoss if rows of a sliced plan are damaged.
// Memory: 8 bytes per class and split, a bit per row.
#ifndef SHARDPACK_CONVERTERS_PLANNING_CLASS_GAPS_H_
#define SHARDPACK_CONVERTERS_PLANNING_CLASS_GAPS_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "converters/listing/skip.h"
#include "converters/planning/plan.h"

namespace shardpack {

// At most one line of each kind. `skips`: rows that could not be packed, in any order.
absl::StatusOr<std::vector<std::string>> ClassGaps(const Plan& plan, std::span<const Skip> skips);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PLANNING_CLASS_GAPS_H_

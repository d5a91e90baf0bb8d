// ClassGaps: finds problems for training: classes without any packed sample, and classes that are
// in another split but not in `train`.
//
//   for (const std::string& line : ClassGaps(plan, report.skips)) Warn(line);
//
// Thread-safety: pure.
// Memory: 8 bytes per class and split.
#ifndef SHARDPACK_CONVERTERS_PLANNING_CLASS_GAPS_H_
#define SHARDPACK_CONVERTERS_PLANNING_CLASS_GAPS_H_

#include <span>
#include <string>
#include <vector>

#include "converters/listing/skip.h"
#include "converters/planning/plan.h"

namespace shardpack {

// At most one line of each kind. `skips`: rows that could not be packed, sorted.
std::vector<std::string> ClassGaps(const Plan& plan, std::span<const Skip> skips);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PLANNING_CLASS_GAPS_H_

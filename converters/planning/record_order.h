// Record order: the order of the plan, kept beside a dataset whose format wants its shards in the
// order of keys.
//
//   if (plan.is_reordered()) Write(kRecordOrderName, RecordOrderBytes(plan, skips));
//   absl::StatusOr<std::vector<uint32_t>> places = ParseRecordOrder(bytes, records);
//
// `pack convert` needs it: what was packed in one order must come out in it, whatever lies in
// between. For each record, in the order of the manifest's shards, its place in the order of the
// plan, counted over what was packed, from 0: u32, little-endian.
//
// Errors: DataLoss for anything that is no permutation of the records.
#ifndef SHARDPACK_CONVERTERS_PLANNING_RECORD_ORDER_H_
#define SHARDPACK_CONVERTERS_PLANNING_RECORD_ORDER_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "converters/listing/skip.h"
#include "converters/planning/plan.h"

namespace shardpack {

inline constexpr std::string_view kRecordOrderName = "order.u32";

// `skips` are all of the run: what was not packed has no place.
std::string RecordOrderBytes(const Plan& plan, std::span<const Skip> skips);

absl::StatusOr<std::vector<uint32_t>> ParseRecordOrder(std::string_view bytes, uint64_t records);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PLANNING_RECORD_ORDER_H_

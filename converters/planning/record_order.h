// Record order: the order of the plan, stored beside a dataset whose format needs its shards in key
// order.
//
//   if (plan.is_reordered()) Write(kRecordOrderName, RecordOrderBytes(plan, skips));
//   absl::StatusOr<std::vector<uint32_t>> places = ParseRecordOrder(bytes, records);
//
// `pack convert` needs it to restore the order in which the samples were packed first. For each
// record, in the order of the manifest's shards, it holds the record's index in the order of the
// plan, counting only packed samples, from 0: u32, little-endian.
//
// Errors: DataLoss for anything that is not a permutation of the records.
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

// `skips` are all of the run: samples that were not packed have no index.
std::string RecordOrderBytes(const Plan& plan, std::span<const Skip> skips);

absl::StatusOr<std::vector<uint32_t>> ParseRecordOrder(std::string_view bytes, uint64_t records);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PLANNING_RECORD_ORDER_H_

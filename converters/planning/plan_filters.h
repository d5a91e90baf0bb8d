// Plan filters: leave rows out on request: by size, by shape, as copies of others, by a limit.
//
//   FilteredRows rows = UsableRows(listing);
//   FilterByImage(listing, options, rows);  FilterCopies(listing, options, rows);
//   FilterByLimit(options, rows); rows.rows;  rows.filtered;
//
// Internal to the plan.
//
// Lifetime: rows are numbers in the listing, which must not change meanwhile.
// Thread-safety: pure functions of their arguments; `rows` has one owner.
#ifndef SHARDPACK_CONVERTERS_PLANNING_PLAN_FILTERS_H_
#define SHARDPACK_CONVERTERS_PLANNING_PLAN_FILTERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "converters/planning/plan.h"

namespace shardpack {

struct FilteredRows {
  std::vector<uint32_t> rows;  // ascending
  uint64_t filtered = 0;
  std::vector<std::string> notes;
};

// All rows without a skip.
FilteredRows UsableRows(const Listing& listing);
// These two require a probed listing if their options are set.
void FilterByImage(const Listing& listing, const PlanOptions& options, FilteredRows& rows);
void FilterCopies(const Listing& listing, const PlanOptions& options, FilteredRows& rows);
void FilterByLimit(const PlanOptions& options, FilteredRows& rows);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PLANNING_PLAN_FILTERS_H_

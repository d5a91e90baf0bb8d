// The trial of a target: what a format cannot hold is found out before work starts, by asking its
// writer.
//
//   std::vector<RefusedField> refused = *RefusedFields(format, options, listing);   // nothing is read
//   absl::Status fits = TrySamples(plan, source);   // a few real samples
//
// A format says what it cannot hold by refusing the sample (ShardWriter::Append, InvalidArgument);
// here it gets samples of each kind that the listing has: the first, one without a label, the one
// with the longest key.
//
// Lifetime: borrows for the call.
// Thread-safety: pure, but for a file in the folder for temporary files.
// Errors: TrySamples InvalidArgument with the writer's own words; I/O Status.
#ifndef SHARDPACK_CONVERTERS_PLANNING_TARGET_TRIAL_H_
#define SHARDPACK_CONVERTERS_PLANNING_TARGET_TRIAL_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "converters/listing/sample_source.h"
#include "converters/planning/plan.h"

namespace shardpack {

struct RefusedField {
  size_t field;     // position in listing.fields
  std::string why;  // the writer's words
};

absl::StatusOr<std::vector<RefusedField>> RefusedFields(const Format& format,
                                                        const PlanOptions& options,
                                                        const Listing& listing);

absl::Status TrySamples(const Plan& plan, const SampleSource& source);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PLANNING_TARGET_TRIAL_H_

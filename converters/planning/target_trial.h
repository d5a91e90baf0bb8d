// The trial of a target: finds out before work starts what a format cannot hold, by asking its
// writer.
//
//   std::vector<RefusedField> refused = *RefusedFields(format, options, listing);  // reads nothing
//   absl::Status fits = TrySamples(plan, source);   // a few real samples
//
// A format reports what it cannot hold by refusing the sample (ShardWriter::Append,
// InvalidArgument); here it gets one sample of each kind in the listing: the first, one without a
// label, the one with the longest key.
//
// Lifetime: borrows for the call.
// Thread-safety: pure, except for a file in the folder for temporary files.
// Errors: TrySamples returns InvalidArgument with the writer's own message; I/O Status.
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
  size_t field;     // index into listing.fields
  std::string why;  // the writer's message
};

absl::StatusOr<std::vector<RefusedField>> RefusedFields(const Format& format,
                                                        const PlanOptions& options,
                                                        const Listing& listing);

absl::Status TrySamples(const Plan& plan, const SampleSource& source);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PLANNING_TARGET_TRIAL_H_

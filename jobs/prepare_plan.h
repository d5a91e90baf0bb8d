// PreparePlan: makes a source and a plan from a request: listing, probe pass, planning.
//
//   absl::StatusOr<Prepared> prepared = PreparePlan(request, pool, observer);
//   Build(prepared->plan, *prepared->source, ...);
//
// Lifetime: the source borrows the pool.
// Thread-safety: one caller.
// Errors: InvalidArgument for impossible options and sources; FailedPrecondition for key
// collisions; I/O Status. Notes and warnings about listing and plan go to the observer.
#ifndef SHARDPACK_JOBS_PREPARE_PLAN_H_
#define SHARDPACK_JOBS_PREPARE_PLAN_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "converters/listing/sample_source.h"
#include "converters/planning/plan.h"
#include "converters/threads/io_pool.h"
#include "jobs/pack_request.h"
#include "jobs/plan_observer.h"

namespace shardpack {

struct Prepared {
  std::unique_ptr<SampleSource> source;
  Plan plan;
  std::string planned_source = {};  // as in OutputOptions
};

absl::StatusOr<Prepared> PreparePlan(const PackRequest& request, IoPool& pool,
                                     PlanObserver& observer);

// The same from an existing plan. `root` is the path of its source on this machine; "" = the path
// recorded in the plan.
absl::StatusOr<Prepared> PreparePlanned(Plan plan, const std::string& root, IoPool& pool,
                                        PlanObserver& observer);

}  // namespace shardpack

#endif  // SHARDPACK_JOBS_PREPARE_PLAN_H_

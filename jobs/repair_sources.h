// RepairSources: what a repair may take lost bytes from: the paths that were named, or the source
// that the manifest names.
//
//   absl::StatusOr<std::vector<RepairSource>> sources = OpenRepairSources(from, manifest, taken, pool, observer);
//
// A folder with a manifest is a copy of the dataset; everything else is the source: the folder,
// list, archive or COCO json that was packed, from which the plan can be made again with the
// options of the manifest.
//
// Lifetime: the sources borrow the pool, the observer and the manifest.
// Thread-safety: one caller.
// Errors: InvalidArgument for a path that is not there; DataLoss for a copy whose
// manifest is damaged; I/O Status; all of them where no other source is left, and else a warning.
#ifndef SHARDPACK_JOBS_REPAIR_SOURCES_H_
#define SHARDPACK_JOBS_REPAIR_SOURCES_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "converters/repairing/repair.h"
#include "converters/threads/io_pool.h"
#include "formats/core/manifest.h"
#include "jobs/plan_observer.h"

namespace shardpack {

// Those of `from` (--from), or the recorded one. With `manifest_taken` from one of them it may hold
// nothing else, so that the recorded one is looked into as well, if it is there.
absl::StatusOr<std::vector<RepairSource>> OpenRepairSources(std::span<const std::string> from,
                                                            const Manifest& manifest,
                                                            bool manifest_taken, IoPool& pool,
                                                            PlanObserver& observer);

}  // namespace shardpack

#endif  // SHARDPACK_JOBS_REPAIR_SOURCES_H_

// OpenRepairSources: the sources from which a repair may take lost bytes: the given paths, or the
// source recorded in the manifest.
//
//   absl::StatusOr<std::vector<RepairSource>> sources = OpenRepairSources(from, manifest, taken, pool, observer);
//
// A folder with a manifest is a copy of the dataset. Any other path is the source: the folder,
// list, archive or COCO json that was packed, from which the plan can be made again with the
// options in the manifest.
//
// Lifetime: the sources borrow the pool, the observer and the manifest.
// Thread-safety: one caller.
// Errors: InvalidArgument for a path that does not exist; DataLoss for a copy with a damaged
// manifest; I/O Status. If another source is left, these are only warnings.
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

// Opens the paths in `from` (--from), or the recorded source. With `manifest_taken`, the manifest
// came from one of them, which may hold nothing else, so the recorded source is also used if it
// exists.
absl::StatusOr<std::vector<RepairSource>> OpenRepairSources(std::span<const std::string> from,
                                                            const Manifest& manifest,
                                                            bool manifest_taken, IoPool& pool,
                                                            PlanObserver& observer);

}  // namespace shardpack

#endif  // SHARDPACK_JOBS_REPAIR_SOURCES_H_

// CompareWithSource: verifies that the source of a finished dataset still has the bytes that were
// packed, whatever its times say. Each input is read once and probed as in a build, and the hashes
// of its fields are compared with those of the indexes. No shard is read.
//
//   absl::Status same = CompareWithSource("OUT", manifest, plan, source, pool, progress, stop);
//
// Lifetime: borrows all arguments for the call.
// Thread-safety: any number of calls at once.
// Errors: FailedPrecondition that names the first inputs that differ or cannot be read;
// InvalidArgument if pixels were changed when the dataset was packed, so its bytes say nothing
// about the source's; errors of OutputDir and the source; Cancelled.
// Units: bytes. Takes 8 MiB of samples for each thread of the pool, and one larger sample.
#ifndef SHARDPACK_CONVERTERS_BUILDING_COMPARE_SOURCE_H_
#define SHARDPACK_CONVERTERS_BUILDING_COMPARE_SOURCE_H_

#include <atomic>
#include <string>

#include "absl/status/status.h"
#include "converters/building/build.h"
#include "converters/listing/sample_source.h"
#include "converters/planning/plan.h"
#include "converters/threads/io_pool.h"
#include "formats/core/manifest.h"

namespace shardpack {

// `manifest` is that of the dataset in `out`, and of this plan.
absl::Status CompareWithSource(const std::string& out, const Manifest& manifest, const Plan& plan,
                               const SampleSource& source, IoPool& pool, BuildProgress& progress,
                               const std::atomic<int>& stop);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_BUILDING_COMPARE_SOURCE_H_

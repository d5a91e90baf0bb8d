// CompareWithSource: proves that the source of a finished dataset still has the bytes that were
// packed, whatever its times say: each input is read once, judged as a build would judge it, and
// its fields' hashes are compared with those of the indexes. No shard is read.
//
//   absl::Status same = CompareWithSource("OUT", manifest, plan, source, pool, progress, stop);
//
// Lifetime: borrows all arguments for the call.
// Thread-safety: any number at once.
// Errors: FailedPrecondition that names the first inputs that differ, or that cannot be read;
// InvalidArgument where pixels were changed when the dataset was packed, so that its bytes tell
// nothing of the source's; what OutputDir and the source answer; Cancelled. Memory: 8 MiB of
// samples a thread of the pool, and one sample that is larger.
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

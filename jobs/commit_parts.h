// CommitParts: publishes the dataset whose shards were built by workers, each a range of one plan.
//
//   absl::StatusOr<CommittedParts> committed = CommitParts("shards", output, options, pool);
//
// Lifetime: borrows during the call.
// Thread-safety: one caller per OUT.
// Errors: InvalidArgument for an OUT that is not a folder; those of OutputDir::Open and Commit.
#ifndef SHARDPACK_JOBS_COMMIT_PARTS_H_
#define SHARDPACK_JOBS_COMMIT_PARTS_H_

#include <string>

#include "absl/status/statusor.h"
#include "converters/building/build.h"
#include "converters/planning/output_options.h"
#include "converters/planning/plan.h"
#include "converters/publishing/commit.h"
#include "converters/threads/io_pool.h"

namespace shardpack {

struct CommittedParts {
  Plan plan;
  RunReport report;
};

absl::StatusOr<CommittedParts> CommitParts(const std::string& out, const OutputOptions& output,
                                           const CommitOptions& options, IoPool& pool);

}  // namespace shardpack

#endif  // SHARDPACK_JOBS_COMMIT_PARTS_H_

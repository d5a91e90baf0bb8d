// The handle of a job, and how one is started.
//
//   return StartJob(program, *JobWords({"validate", "shards"}), "", nullptr);
//
// Lifetime, thread-safety: as PackJob (api/jobs/pack_job.h).
// Errors: those of PackJob::Start.
#ifndef SHARDPACK_API_JOB_HANDLE_H_
#define SHARDPACK_API_JOB_HANDLE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "api/handles.h"
#include "api/jobs/pack_job.h"
#include "api/shardpack.h"

struct shardpack_job : shardpack::api::Handle<std::unique_ptr<shardpack::PackJob>> {
  using Handle::Handle;
};

namespace shardpack::api {

// `program`: what FindPack has found. `words`: those of JobWords. `folder`: its working folder; "":
// that of this process.
absl::StatusOr<shardpack_job*> StartJob(const std::string& program,
                                        const std::vector<std::string>& words,
                                        const std::string& folder,
                                        std::function<void(int exit_code)> at_end);

}  // namespace shardpack::api

#endif  // SHARDPACK_API_JOB_HANDLE_H_

// The handle of a job, and how one is started.
//
//   return StartJob({"validate", "shards"}, "", nullptr);
//
// Lifetime, thread-safety: as PackJob (api/jobs/pack_job.h).
// Errors: those of JobWords, FindPack and PackJob::Start.
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

// `program`: what FindPack has found. `typed`: a command of it. `folder`: its working folder; "":
// that of this process.
absl::StatusOr<shardpack_job*> StartJob(const std::string& program, std::vector<std::string> typed,
                                        const std::string& folder,
                                        std::function<void(int exit_code)> at_end);
// Finds the program.
absl::StatusOr<shardpack_job*> StartJob(std::vector<std::string> typed, const std::string& folder,
                                        std::function<void(int exit_code)> at_end);

}  // namespace shardpack::api

#endif  // SHARDPACK_API_JOB_HANDLE_H_

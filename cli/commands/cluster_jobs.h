// ClusterJobs: the jobs that build a plan on a cluster and publish the result, for the scheduler
// that it has: an array of Slurm, or an indexed Job of Kubernetes.
//
//   const ClusterJobs jobs{.program = "pack", .plan = "/data/plan", .out = "/data/shards", .workers = 64};
//   ASSIGN_OR_RETURN(const JobFiles files, PlanClusterJobs(line, plan));
//   RETURN_IF_ERROR(WriteClusterJobs(files));                // jobs/build.sbatch, jobs/commit.sbatch
//
// Thread-safety: pure except for the file system.
// Errors: InvalidArgument for paths that such a file cannot hold; AlreadyExists (exit 5) for files
// that are there with another text; I/O Status.
#ifndef SHARDPACK_CLI_COMMANDS_CLUSTER_JOBS_H_
#define SHARDPACK_CLI_COMMANDS_CLUSTER_JOBS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/flags/command_line.h"
#include "converters/planning/plan.h"

namespace shardpack::cli {

struct ClusterJobs {
  std::string program;            // as tasks of Slurm start it
  std::string plan, out, source;  // absolute
  size_t workers = 1;
};

std::string SlurmBuild(const ClusterJobs& jobs, const std::string& folder);
std::string SlurmCommit(const ClusterJobs& jobs, const std::string& folder);
std::string KubernetesBuild(const ClusterJobs& jobs);
std::string KubernetesCommit(const ClusterJobs& jobs);

struct JobFile {
  std::string folder, name, text;
};

struct JobFiles {
  std::vector<JobFile> files;
  std::string next;  // what to type then, or ""
};

// Whether --slurm, --k8s and --tasks of `pack plan` go together: call before the source is read.
absl::Status CheckJobFlags(const CommandLine& line);
// What they ask for. Makes their folders and writes nothing, so that a refusal comes before the
// plan is written.
absl::StatusOr<JobFiles> PlanClusterJobs(const CommandLine& line, const Plan& plan);
absl::Status WriteClusterJobs(const JobFiles& jobs);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_COMMANDS_CLUSTER_JOBS_H_

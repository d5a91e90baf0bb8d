// What a worker builds, from its flags and, with --worker auto, from the variables that
// a cluster's scheduler sets for each task.
//
//   absl::StatusOr<std::optional<WorkerOptions>> worker = WorkerOf(flags.worker, shards, getenv);
//   ASSIGN_OR_RETURN(Part part, PartOfTask(getenv));        // {3, 8}: the third of eight
//
// Thread-safety: pure except for the variables.
// Errors: InvalidArgument (exit 2).
#ifndef SHARDPACK_CLI_COMMANDS_WORKER_PART_H_
#define SHARDPACK_CLI_COMMANDS_WORKER_PART_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/flags/command_line.h"
#include "converters/planning/output_options.h"

namespace shardpack::cli {

// Returns the value of an environment variable, or nullptr, as getenv does.
using Environment = std::function<const char*(const char*)>;

struct TaskPart {
  uint64_t part = 1, parts = 1;  // `part` from 1
};

// The part of the task that this process is, of a job array of Slurm, Kubernetes, PBS, Grid Engine
// or LSF, or a rank of Open MPI.
absl::StatusOr<TaskPart> PartOfTask(const Environment& environment);

// "3,7-9": [3, 4) and [7, 10), sorted and without overlaps.
absl::StatusOr<std::vector<std::pair<size_t, size_t>>> ParseShardList(const std::string& text);

// For a plan of so many shards.
absl::StatusOr<WorkerOptions> WorkerOf(const WorkerFlags& flags, size_t shards,
                                       const Environment& environment);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_COMMANDS_WORKER_PART_H_

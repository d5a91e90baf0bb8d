// PreparePlan: from the flags of build and plan to a source and a plan: listing, probe pass,
// planning, with progress.
//
//   absl::StatusOr<Prepared> prepared = PreparePlan(line, pool, terminal);
//   Build(prepared->plan, *prepared->source, ...);
//
// Lifetime: the source borrows the pool.
// Thread-safety: one caller.
// Errors: InvalidArgument for flags and sources that cannot be; FailedPrecondition for key
// collisions; I/O Status. Prints the warnings of listing and plan.
#ifndef SHARDPACK_CLI_COMMANDS_PREPARE_PLAN_H_
#define SHARDPACK_CLI_COMMANDS_PREPARE_PLAN_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/flags/command_line.h"
#include "cli/terminal/terminal.h"
#include "converters/listing/sample_source.h"
#include "converters/planning/plan.h"
#include "converters/threads/io_pool.h"

namespace shardpack::cli {

struct Prepared {
  std::unique_ptr<SampleSource> source;
  Plan plan;
  std::string planned_source = {};  // as in OutputOptions
};

absl::StatusOr<Prepared> PreparePlan(const CommandLine& line, IoPool& pool, Terminal& terminal);

// The same from what `pack plan --write` wrote (--plan).
absl::StatusOr<Prepared> ReadPlan(const CommandLine& line, IoPool& pool, Terminal& terminal);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_COMMANDS_PREPARE_PLAN_H_

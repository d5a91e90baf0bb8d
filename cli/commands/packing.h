// Turns the flags of build, plan and convert into a source and a plan, with progress on the
// terminal.
//
//   absl::StatusOr<Prepared> prepared = Prepare(line, pool, terminal);
//
// Lifetime: the result borrows the pool.
// Thread-safety: one caller.
// Errors: those of PreparePlan and PreparePlanned, with suggested commands.
#ifndef SHARDPACK_CLI_COMMANDS_PACKING_H_
#define SHARDPACK_CLI_COMMANDS_PACKING_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/flags/command_line.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/terminal.h"
#include "converters/threads/io_pool.h"
#include "jobs/plan_observer.h"
#include "jobs/prepare_plan.h"

namespace shardpack::cli {

// Prints messages and progress while a plan is made.
class ShownPlanning : public PlanObserver {
 public:
  explicit ShownPlanning(Terminal& terminal) : terminal_(terminal), progress_(terminal) {}

  void Note(const std::string& text) override;
  void Warn(const std::string& text) override;
  void BeginStage(const std::string& stage, std::function<uint64_t()> done,
                  uint64_t total) override;
  void EndStage() override;

 private:
  Terminal& terminal_;
  Progress progress_;
};

// The classes of --classes FILE, one per line.
absl::StatusOr<std::vector<std::string>> ReadClasses(const std::string& file);

// Prepares from the flags, or with --plan from an existing plan.
absl::StatusOr<Prepared> Prepare(const CommandLine& line, IoPool& pool, Terminal& terminal);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_COMMANDS_PACKING_H_

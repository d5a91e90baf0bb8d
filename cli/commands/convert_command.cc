#include "cli/commands/commands.h"

namespace shardpack::cli {

// A build whose source is a dataset, and which changes nothing that was not asked for.
ExitCode RunConvert(const CommandLine& line, Terminal& terminal) {
  CommandLine build = line;
  build.input_format = "dataset";
  build.plan.shuffle = line.Given("shuffle") && line.plan.shuffle;
  return RunBuild(build, terminal);
}

}  // namespace shardpack::cli

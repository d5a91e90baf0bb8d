#include "cli/commands/commands.h"

namespace shardpack::cli {

// A build whose source is a dataset, and which changes nothing that was not asked for.
ExitCode RunConvert(const CommandLine& line, Terminal& terminal) {
  CommandLine build = line;
  build.pack().request.input_format = "dataset";
  bool& shuffle = build.pack().request.plan.shuffle;
  shuffle = line.Given("shuffle") && shuffle;
  return RunBuild(build, terminal);
}

}  // namespace shardpack::cli

#include "cli/commands/commands.h"

namespace shardpack::cli {

// A build from a dataset, which changes nothing unless requested.
ExitCode RunConvert(const CommandLine& line, Terminal& terminal) {
  CommandLine build = line;
  build.pack().request.input_format = "dataset";
  bool& shuffle = build.pack().request.plan.shuffle;
  shuffle = line.Given("shuffle") && shuffle;
  return RunBuild(build, terminal);
}

}  // namespace shardpack::cli

// pack-bench-device: the program that `pack bench --device` starts. It links CUDA, which pack does
// not, and takes pack's command line.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "cli/commands/device_bench.h"
#include "cli/flags/failure.h"
#include "cli/flags/parse.h"
#include "cli/terminal/exit_code.h"
#include "formats/io/resources.h"

namespace shardpack::cli {
namespace {

ExitCode Main(std::vector<std::string> words) {
  const bool json = AsksForJson(words);
  absl::StatusOr<CommandLine> line = ParseCommandLine("pack", std::move(words));
  if (line.ok() && (line->verb != Verb::kBench || line->bench().device == DeviceChoice::kCpu)) {
    line = absl::InvalidArgumentError("this program is for pack bench --device cuda or host");
  }
  if (!line.ok()) {
    Terminal terminal;
    return FinishCommand(json, Fail(line.status(), terminal), terminal);
  }
  Terminal terminal(line->progress, line->quiet);
  const ExitCode code = RunDeviceBench(*line, terminal);
  return FinishCommand(json, code, terminal);
}

}  // namespace
}  // namespace shardpack::cli

int main(int argc, char** argv) {
  try {
    return static_cast<int>(
        shardpack::cli::Main(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc)));
  } catch (const std::exception& error) {
    const absl::Status failed = shardpack::StatusOfException("bench", error);
    std::fprintf(stderr, "pack: error: %s\n", std::string(failed.message()).c_str());
    return static_cast<int>(shardpack::cli::ExitCodeOf(failed, 0));
  }
}

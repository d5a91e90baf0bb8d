// What bench reads, and how: shared by batches in host memory and on a device.
//
//   absl::StatusOr<BenchInput> input = OpenBenchInput(line);
//   Loader::Open(input->dataset, input->order, {}, BenchLoader(line), memory);
//
// Errors: those of opening; InvalidArgument for a split that does not exist.
#ifndef SHARDPACK_CLI_COMMANDS_BENCH_SETUP_H_
#define SHARDPACK_CLI_COMMANDS_BENCH_SETUP_H_

#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "cli/flags/command_line.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/terminal.h"
#include "readers/dataset/dataset.h"
#include "readers/loading/loader.h"
#include "readers/order/order.h"

namespace shardpack::cli {

struct BenchInput {
  Dataset dataset;
  Order order;
};
absl::StatusOr<BenchInput> OpenBenchInput(const CommandLine& line);
LoaderOptions BenchLoader(const CommandLine& line);
// "batches of 256, shuffled as a whole, verified, 2 threads".
std::string DescribeLoader(const CommandLine& line, int threads);
// Damaged samples are warnings, and the exit code kDamage.
ExitCode PrintBench(std::string_view result, std::span<const BadSample> damaged,
                    Terminal& terminal);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_COMMANDS_BENCH_SETUP_H_

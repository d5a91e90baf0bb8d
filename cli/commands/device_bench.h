// RunDeviceBench: `pack bench --device`: delivers batches of a dataset to a device, and compares
// with what the device and the loader can do alone. Part of the program pack-bench-device, which
// links CUDA.
//
//   return RunDeviceBench(line, terminal);
//
// Lifetime, thread-safety, errors: as the commands (cli/commands/commands.h).
#ifndef SHARDPACK_CLI_COMMANDS_DEVICE_BENCH_H_
#define SHARDPACK_CLI_COMMANDS_DEVICE_BENCH_H_

#include "cli/flags/command_line.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/terminal.h"

namespace shardpack::cli {

ExitCode RunDeviceBench(const CommandLine& line, Terminal& terminal);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_COMMANDS_DEVICE_BENCH_H_

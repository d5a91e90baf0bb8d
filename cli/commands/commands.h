// The commands: one function per verb, each in the file <verb>_command.cc.
//
//   ExitCode code = RunBuild(line, terminal);
//
// Each prints its results on stdout and everything else through the terminal.
//
// Lifetime: borrows during the call.
// Thread-safety: one command per process.
// Errors: reported on the terminal; the exit code summarises them.
#ifndef SHARDPACK_CLI_COMMANDS_COMMANDS_H_
#define SHARDPACK_CLI_COMMANDS_COMMANDS_H_

#include "cli/flags/command_line.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/terminal.h"

namespace shardpack::cli {

ExitCode RunBuild(const CommandLine& line, Terminal& terminal);
ExitCode RunList(const CommandLine& line, Terminal& terminal);
ExitCode RunPlan(const CommandLine& line, Terminal& terminal);
ExitCode RunStatus(const CommandLine& line, Terminal& terminal);
ExitCode RunCommit(const CommandLine& line, Terminal& terminal);
ExitCode RunConvert(const CommandLine& line, Terminal& terminal);
ExitCode RunIndex(const CommandLine& line, Terminal& terminal);
ExitCode RunValidate(const CommandLine& line, Terminal& terminal);
ExitCode RunRepair(const CommandLine& line, Terminal& terminal);
ExitCode RunInfo(const CommandLine& line, Terminal& terminal);
ExitCode RunLs(const CommandLine& line, Terminal& terminal);
ExitCode RunCat(const CommandLine& line, Terminal& terminal);
ExitCode RunExtract(const CommandLine& line, Terminal& terminal);
ExitCode RunStats(const CommandLine& line, Terminal& terminal);
ExitCode RunDiff(const CommandLine& line, Terminal& terminal);
ExitCode RunDups(const CommandLine& line, Terminal& terminal);
ExitCode RunReportPage(const CommandLine& line, Terminal& terminal);
ExitCode RunBench(const CommandLine& line, Terminal& terminal);
ExitCode RunCompletions(const CommandLine& line, Terminal& terminal);
ExitCode RunMan(const CommandLine& line, Terminal& terminal);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_COMMANDS_COMMANDS_H_

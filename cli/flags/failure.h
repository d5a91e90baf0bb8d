// Fail: says on stderr why a command ends early, and answers its exit code.
//
//   if (!plan.ok()) return Fail(plan.status(), terminal);
//   return FinishResults(results, ExitCode::kDone, terminal);
//
// Thread-safety: as Terminal.
#ifndef SHARDPACK_CLI_FLAGS_FAILURE_H_
#define SHARDPACK_CLI_FLAGS_FAILURE_H_

#include <span>
#include <string>

#include "absl/status/status.h"
#include "cli/flags/command_line.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/terminal.h"

namespace shardpack::cli {

// Remembered by the terminal as well, for FinishCommand. A Cancelled status is said in one word:
// the user has asked for it.
ExitCode Fail(const absl::Status& status, Terminal& terminal);

// After a command that has ended early: `kept`, and the command that goes on. Only after errors
// that another run may not meet: I/O, a signal.
void SayHowToGoOn(ExitCode code, const std::string& kept, const CommandLine& line,
                  Terminal& terminal);

// The status with the commands to type, where it offers flags.
absl::Status WithCommands(const absl::Status& status, const CommandLine& line);

// Whether a command line that could not be understood asks for JSON.
bool AsksForJson(std::span<const std::string> words);

// The last that a command does: with `json`, what Fail was told is the last line of stdout too, as
// one object of the schema "shardpack.error/1" with code and message.
ExitCode FinishCommand(bool json, ExitCode code, Terminal& terminal);

// Closes the results; an error of writing them is said and makes the code worse.
ExitCode FinishResults(Results& results, ExitCode code, Terminal& terminal);

// The same of text that is all a command prints.
ExitCode PrintResult(std::string_view text, Terminal& terminal);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_FLAGS_FAILURE_H_

// Fail: prints on stderr why a command ends early, and returns its exit code.
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
#include "converters/listing/offered_flags.h"

namespace shardpack::cli {

// The terminal also remembers the message, for FinishCommand. A Cancelled status is reported in one
// word, because the user asked for it.
ExitCode Fail(const absl::Status& status, Terminal& terminal);

// After a command that has ended early: prints `kept`, and the command that resumes, which is the
// same with `more`. Only after errors that may not happen again: I/O, a signal.
void SayHowToGoOn(ExitCode code, const std::string& kept, const CommandLine& line,
                  Terminal& terminal, const FlagWords& more = {});

// Adds the commands to type, if the status suggests flags.
absl::Status WithCommands(const absl::Status& status, const CommandLine& line);

// A flag that was given, as it was typed: "--no-wait" where --wait was given that way.
std::string AsTyped(const CommandLine& line, const std::string& flag);

// Whether a command line that could not be parsed asks for JSON.
bool AsksForJson(std::span<const std::string> words);

// The last step of a command: with `json`, also prints the message given to Fail as the last line
// of stdout, as one object of the schema "shardpack.error/1" with code and message.
ExitCode FinishCommand(bool json, ExitCode code, Terminal& terminal);

// Closes the results; a write error is reported and makes the exit code worse.
ExitCode FinishResults(Results& results, ExitCode code, Terminal& terminal);

// The same for a command that prints only this text.
ExitCode PrintResult(std::string_view text, Terminal& terminal);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_FLAGS_FAILURE_H_

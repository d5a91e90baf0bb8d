// ParseCommandLine: parses the words typed by the user into a CommandLine.
//
//   absl::StatusOr<CommandLine> line = ParseCommandLine("pack", {"photos/", "-o", "shards/"});
//   if (line.ok() && line->help) PrintHelp(*line);
//
// If the first word is not a verb, the verb is build. CLI11 splits the words; the table of flags
// interprets them.
//
// Thread-safety: pure except for reading --config.
// Errors: InvalidArgument (exit 2) with the nearest flag, verb or value; exceptions of CLI11 do not
// leave this file.
#ifndef SHARDPACK_CLI_FLAGS_PARSE_H_
#define SHARDPACK_CLI_FLAGS_PARSE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/flags/command_line.h"

namespace shardpack::cli {

// `words` is the command line after the program name.
absl::StatusOr<CommandLine> ParseCommandLine(std::string program, std::vector<std::string> words);

// The error for a first word that is neither a verb nor a file: suggests a verb, or lists them all.
absl::Status NoSuchVerb(const std::string& word);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_FLAGS_PARSE_H_

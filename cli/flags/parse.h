// ParseCommandLine: the words that a user typed, as a CommandLine.
//
//   absl::StatusOr<CommandLine> line = ParseCommandLine("pack", {"photos/", "-o", "shards/"});
//   if (line.ok() && line->help) PrintHelp(*line);
//
// The first word is a verb; when it is none, the verb is build. CLI11 takes the words apart, the
// table of flags says what they mean.
//
// Thread-safety: pure but for reading --config.
// Errors: InvalidArgument (exit 2) with the nearest flag, verb or value; no exception of CLI11
// leaves this file.
#ifndef SHARDPACK_CLI_FLAGS_PARSE_H_
#define SHARDPACK_CLI_FLAGS_PARSE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/flags/command_line.h"

namespace shardpack::cli {

// `words` is the command line after the program's name.
absl::StatusOr<CommandLine> ParseCommandLine(std::string program, std::vector<std::string> words);

// Of a first word that is no verb, and a file as little: the verb that was meant, or all of them.
absl::Status NoSuchVerb(const std::string& word);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_FLAGS_PARSE_H_

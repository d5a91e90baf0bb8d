// CheckResultFile, WriteResultFile: a file that a command writes beside what it prints.
//
//   RETURN_IF_ERROR(CheckResultFile("-o", "report.html", line.arguments));   // before the work
//   RETURN_IF_ERROR(WriteResultFile("report.html", html));
//
// Lifetime: keep nothing.
// Thread-safety: any thread.
// Errors: InvalidArgument, naming the flag, for a place that is none: not a file, in the folder of
// a dataset, or one of the inputs; I/O errors.
#ifndef SHARDPACK_CLI_COMMANDS_RESULT_FILE_H_
#define SHARDPACK_CLI_COMMANDS_RESULT_FILE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace shardpack::cli {

// `inputs`: the paths that the command reads.
absl::Status CheckResultFile(std::string_view flag, const std::string& path,
                             const std::vector<std::string>& inputs);

// Complete or not at all; replaces a file of that name.
absl::Status WriteResultFile(const std::string& path, std::string_view text);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_COMMANDS_RESULT_FILE_H_

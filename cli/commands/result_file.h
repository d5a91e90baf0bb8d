// CheckResultFile, WriteResultFile: a file that a command writes in addition to what it prints.
//
//   RETURN_IF_ERROR(CheckResultFile("-o", "report.html", line.arguments));   // before the work
//   RETURN_IF_ERROR(WriteResultFile("report.html", html));
//
// Thread-safety: any thread.
// Errors: InvalidArgument, naming the flag, for an unsuitable place: not a file, in
// the folder of a dataset or below it, in a shard, or one of the inputs. FailedPrecondition for a
// file that is in the way. I/O errors.
#ifndef SHARDPACK_CLI_COMMANDS_RESULT_FILE_H_
#define SHARDPACK_CLI_COMMANDS_RESULT_FILE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace shardpack::cli {

// What a command writes, and how the first 1024 bytes of a file tell that it is such a one: only
// that, or an empty file, is replaced.
struct ResultKind {
  const char* name;
  bool (*written)(std::string_view beginning);
};
extern const ResultKind kPage, kKeyList;

// Whether a command of this kind wrote the file.
absl::StatusOr<bool> IsOfKind(const std::string& path, const ResultKind& kind);

// `inputs`: the paths that the command reads, files among them.
absl::Status CheckResultFile(std::string_view flag, const std::string& path,
                             const std::vector<std::string>& inputs,
                             const ResultKind& kind = kPage);

// InvalidArgument if there is no folder for it.
absl::Status CheckFolderOf(std::string_view flag, const std::string& path);

// Complete or not at all; replaces a file of that name. From its call on, a signal is answered by
// Cancelled, with nothing left behind, in place of ending the process.
absl::Status WriteResultFile(const std::string& path, std::string_view text);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_COMMANDS_RESULT_FILE_H_

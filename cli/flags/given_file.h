// ReadGivenFile: the text of a file that the user has named with a flag.
//
//   absl::StatusOr<std::string> text = ReadGivenFile("--classes", line.classes_file, kMaxClassesBytes);
//
// Never waits for a FIFO, never reads what has no end.
//
// Thread-safety: any thread.
// Errors: InvalidArgument (exit 2), naming the flag, for a file that is not there, may not be read,
// is not a regular file or too large; other errors of reading as they are.
// Units: bytes.
#ifndef SHARDPACK_CLI_FLAGS_GIVEN_FILE_H_
#define SHARDPACK_CLI_FLAGS_GIVEN_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace shardpack::cli {

absl::StatusOr<std::string> ReadGivenFile(std::string_view flag, const std::string& path,
                                          uint64_t limit_bytes);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_FLAGS_GIVEN_FILE_H_

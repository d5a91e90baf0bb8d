// ReadGivenFile: reads the text of a file named by a flag.
//
//   absl::StatusOr<std::string> text = ReadGivenFile("--classes", line.classes_file, kMaxClassesBytes);
//
// It never waits for a FIFO and never reads an endless file.
//
// Thread-safety: any thread.
// Errors: InvalidArgument (exit 2), naming the flag, for a file that does not exist, is not
// readable, is not a regular file or is too large; other read errors unchanged.
// Units: bytes.
#ifndef SHARDPACK_CLI_FLAGS_GIVEN_FILE_H_
#define SHARDPACK_CLI_FLAGS_GIVEN_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "converters/planning/plan_slices.h"

namespace shardpack::cli {

absl::StatusOr<std::string> ReadGivenFile(std::string_view flag, const std::string& path,
                                          uint64_t limit_bytes);

// The plan of --plan, mapped; the same errors.
absl::StatusOr<PlanFile> MapGivenPlan(const std::string& path);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_FLAGS_GIVEN_FILE_H_

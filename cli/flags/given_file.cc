#include "cli/flags/given_file.h"

#include "absl/strings/str_cat.h"
#include "formats/io/file.h"

namespace shardpack::cli {

absl::StatusOr<std::string> ReadGivenFile(std::string_view flag, const std::string& path,
                                          uint64_t limit_bytes) {
  absl::StatusOr<std::string> text = ReadWholeFile(path, limit_bytes);
  if (text.ok() || !IsAboutThePath(text.status())) return text;
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(flag), ": ", std::string(text.status().message())));
}

}  // namespace shardpack::cli

#include "cli/flags/given_file.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/io/file.h"

namespace shardpack::cli {

namespace {

absl::Status NotGiven(std::string_view flag, const absl::Status& why) {
  if (!IsAboutThePath(why)) return why;
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(flag), ": ", std::string(why.message())));
}

}  // namespace

absl::StatusOr<std::string> ReadGivenFile(std::string_view flag, const std::string& path,
                                          uint64_t limit_bytes) {
  absl::StatusOr<std::string> text = ReadWholeFile(path, limit_bytes);
  return text.ok() ? std::move(text) : NotGiven(flag, text.status());
}

absl::StatusOr<PlanFile> MapGivenPlan(const std::string& path) {
  absl::StatusOr<PlanFile> file = MapPlan(path);
  return file.ok() ? std::move(file) : NotGiven("--plan", file.status());
}

}  // namespace shardpack::cli

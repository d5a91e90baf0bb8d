#include "converters/publishing/shard_failures.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "converters/publishing/pack_names.h"
#include "formats/io/escape.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr uint64_t kMaxFailureBytes = 64 << 10;

}  // namespace

std::string ShardFailure::Text() const {
  return absl::StrCat(workers, workers == 1 ? " worker: " : " workers: ", EscapeForTerminal(why));
}

absl::StatusOr<std::map<uint32_t, ShardFailure>> ReadShardFailures(const OwnedFolder& dataset) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, dataset.List(kFailedFolder));
  std::map<uint32_t, std::pair<size_t, std::string>> last;  // number of files, and one of them
  for (const std::string& name : names) {
    const std::optional<std::pair<uint32_t, std::string>> failure = ParseFailureName(name);
    if (!failure) continue;
    auto& [workers, file] = last[failure->first];
    ++workers;
    file = name;
  }
  std::map<uint32_t, ShardFailure> failures;
  for (const auto& [shard, files] : last) {
    const absl::StatusOr<std::string> text =
        dataset.Read(absl::StrCat(std::string(kFailedFolder), "/", files.second), kMaxFailureBytes);
    failures[shard] = {files.first, text.ok() ? *text : std::string(text.status().message())};
  }
  return failures;
}

}  // namespace shardpack

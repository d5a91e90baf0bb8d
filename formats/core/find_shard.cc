#include "formats/core/find_shard.h"

#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/io/bytes.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

using Head = std::vector<std::byte>;

struct Candidate {
  const Format* format;
  std::string data_path;
  Head head;
};

std::string_view BaseName(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path.substr(path.rfind('/') + 1);
}

absl::StatusOr<Head> ReadHead(const std::string& path) {
  ASSIGN_OR_RETURN(File file, File::OpenRead(path));
  Head head(kSniffBytes);
  ASSIGN_OR_RETURN(size_t got, file.ReadAt(0, head));
  head.resize(got);
  return head;
}

}  // namespace

absl::StatusOr<FoundShard> FindShard(const std::string& path, bool is_folder,
                                     std::span<const Format* const> formats) {
  std::vector<Candidate> candidates;
  for (const Format* format : formats) {
    if (is_folder != !format->traits.data_file.empty()) continue;
    Candidate candidate{.format = format, .data_path = path, .head = {}};
    if (is_folder)
      absl::StrAppend(&candidate.data_path, "/", std::string(format->traits.data_file));
    if (is_folder || candidates.empty()) {
      absl::StatusOr<Head> head = ReadHead(candidate.data_path);
      if (is_folder && absl::IsNotFound(head.status())) continue;
      if (!head.ok()) return head.status();
      candidate.head = *std::move(head);
    } else {
      candidate.head = candidates.front().head;
    }
    candidates.push_back(std::move(candidate));
  }
  // The content takes precedence over the name.
  for (const std::string_view name : {std::string_view(), BaseName(path)}) {
    for (Candidate& candidate : candidates) {
      if (!candidate.format->sniff(candidate.head, name)) continue;
      return FoundShard{candidate.format, std::move(candidate.data_path)};
    }
  }
  return FoundShard();
}

}  // namespace shardpack

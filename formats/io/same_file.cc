#include "formats/io/same_file.h"

#include <cerrno>
#include <map>
#include <utility>

#include "formats/io/file.h"

namespace shardpack {

absl::StatusOr<std::optional<NamedTwice>> FindSameFile(std::span<const std::string> paths) {
  std::map<std::pair<dev_t, ino_t>, size_t> seen;
  for (size_t i = 0; i < paths.size(); ++i) {
    struct stat facts;
    if (::stat(paths[i].c_str(), &facts) != 0) {
      if (!IsAboutThePath(errno)) return IoStatus("look at", paths[i], errno);
      continue;
    }
    const auto [first, fresh] = seen.emplace(std::pair(facts.st_dev, facts.st_ino), i);
    if (!fresh) return NamedTwice{first->second, i};
  }
  return std::nullopt;
}

}  // namespace shardpack

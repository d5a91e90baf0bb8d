#include "converters/publishing/replaceable_files.h"

#include <errno.h>
#include <sys/stat.h>

#include "converters/publishing/conflict.h"
#include "converters/publishing/replacement.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack {

absl::StatusOr<std::optional<ReplaceableFiles::Seen>> ReplaceableFiles::LookAt(
    const std::string& name) const {
  const std::string path = folder_ + "/" + name;
  struct stat facts;
  if (::lstat(path.c_str(), &facts) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    return IoStatus("look at", path, errno);
  }
  return Seen{facts.st_dev, facts.st_ino, static_cast<uint64_t>(facts.st_size),
              int64_t{facts.st_mtim.tv_sec} * 1'000'000'000 + facts.st_mtim.tv_nsec};
}

absl::Status ReplaceableFiles::Note(const std::string& name) {
  ASSIGN_OR_RETURN(const std::optional<Seen> there, LookAt(name));
  if (there) seen_[name] = *there;
  return absl::OkStatus();
}

bool ReplaceableFiles::IsAsNoted(const std::string& name, const std::optional<Seen>& there) const {
  const auto seen = seen_.find(name);
  return there && seen != seen_.end() && seen->second == *there;
}

absl::StatusOr<bool> ReplaceableFiles::IsAsNoted(const std::string& name) const {
  ASSIGN_OR_RETURN(const std::optional<Seen> there, LookAt(name));
  return IsAsNoted(name, there);
}

absl::Status ReplaceableFiles::CheckMayReplace(const std::string& name) const {
  ASSIGN_OR_RETURN(const std::optional<Seen> there, LookAt(name));
  if (!there || IsAsNoted(name, there)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const bool noted, IsNoted(folder_, name));
  if (noted) return absl::OkStatus();
  return Conflict(folder_ + "/" + name,
                  "was not made by this build, which would write another file of this name; "
                  "move it away and run again");
}

}  // namespace shardpack

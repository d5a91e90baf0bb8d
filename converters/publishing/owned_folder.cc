#include "converters/publishing/owned_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/io/list_folder.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr size_t kMaxComponentBytes = 255;
constexpr size_t kMaxNameBytes = 1024;
// A worker that does not yet know that its dataset is published may add files to a folder while it
// is removed.
constexpr int kTries = 100;
constexpr int kMaxDepth = 32;  // for RemoveTree: pack's own folders have three levels

bool IsComponent(std::string_view text) {
  const auto portable = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= kMaxComponentBytes && text != "." && text != ".." &&
         std::all_of(text.begin(), text.end(), portable);
}

absl::Status NotOurKind(const std::string& path, std::string_view there, std::string_view wanted) {
  return absl::FailedPreconditionError(
      absl::StrCat(EscapeForTerminal(path), " is a ", std::string(there), ", where pack has a ",
                   std::string(wanted), "; nothing was removed, move it away by hand"));
}

absl::StatusOr<File> OpenBelow(int parent, const std::string& name, const std::string& path) {
  const int fd = ::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd >= 0) return File(fd, path);
  if (errno == ENOTDIR || errno == ELOOP) return NotOurKind(path, "link or a file", "folder");
  return IoStatus("open folder", path, errno);
}

// Removes the folder of that name with its contents, without following links.
absl::Status RemoveFolder(int parent, const std::string& name, const std::string& path, int depth);

// The names in the open folder.
absl::StatusOr<std::vector<std::string>> ListOpen(const File& folder) {
  // A separate descriptor, because a listing closes it and moves its position.
  const int fd = ::openat(folder.descriptor(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  std::vector<std::string> names;
  RETURN_IF_ERROR(ListOpenFolder(fd, folder.path(), [&](const dirent& entry) {
    names.emplace_back(entry.d_name);
    return true;
  }));
  return names;
}

absl::Status Empty(const File& folder, int depth) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListOpen(folder));
  for (const std::string& name : names) {
    const std::string path = absl::StrCat(folder.path(), "/", name);
    if (::unlinkat(folder.descriptor(), name.c_str(), 0) == 0 || errno == ENOENT) continue;
    if (errno != EISDIR) return IoStatus("remove", path, errno);
    RETURN_IF_ERROR(RemoveFolder(folder.descriptor(), name, path, depth + 1));
  }
  return absl::OkStatus();
}

absl::Status RemoveFolder(int parent, const std::string& name, const std::string& path, int depth) {
  if (depth > kMaxDepth) {
    return absl::FailedPreconditionError(absl::StrCat(
        EscapeForTerminal(path), " is nested too deep to be made by pack; remove it by hand"));
  }
  int error_number = 0;
  for (int i = 0; i < kTries; ++i) {
    const absl::StatusOr<File> below = OpenBelow(parent, name, path);
    if (absl::IsNotFound(below.status())) return absl::OkStatus();
    if (!below.ok()) return below.status();
    RETURN_IF_ERROR(Empty(*below, depth));
    if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT)
      return absl::OkStatus();
    error_number = errno;
    if (error_number != ENOTEMPTY && error_number != EEXIST) break;
  }
  return IoStatus("remove", path, error_number);
}

}  // namespace

// The folder that holds a name's last component, and that component.
struct OwnedFolder::Place {
  File opened;  // unused if it is the owned folder itself
  int parent = -1;
  std::string last, path;
};

absl::StatusOr<OwnedFolder> OwnedFolder::Open(const std::string& path) {
  ASSIGN_OR_RETURN(File folder, File::OpenDirectory(path));
  return OwnedFolder(std::move(folder));
}

absl::StatusOr<OwnedFolder> OwnedFolder::OpenNoLink(const std::string& path) {
  ASSIGN_OR_RETURN(File folder, OpenBelow(AT_FDCWD, path, path));
  return OwnedFolder(std::move(folder));
}

bool OwnedFolder::IsName(std::string_view name) {
  if (name.size() > kMaxNameBytes) return false;
  for (;;) {
    const size_t slash = name.find('/');
    if (!IsComponent(name.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    name.remove_prefix(slash + 1);
  }
}

std::string OwnedFolder::PathOf(std::string_view name) const {
  return absl::StrCat(path(), "/", std::string(name));
}

absl::StatusOr<OwnedFolder::Place> OwnedFolder::Find(std::string_view name) const {
  if (!IsName(name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", EscapeForTerminal(name.substr(0, kMaxComponentBytes)),
                     "\" is not a name of a file that pack makes in ", EscapeForTerminal(path()),
                     "; nothing was touched"));
  }
  Place place;
  place.parent = folder_.descriptor();
  place.path = PathOf(name);
  std::string path = this->path();
  for (size_t slash; (slash = name.find('/')) != std::string_view::npos;
       name.remove_prefix(slash + 1)) {
    const std::string component(name.substr(0, slash));
    absl::StrAppend(&path, "/", component);
    ASSIGN_OR_RETURN(File below, OpenBelow(place.parent, component, path));
    place.opened = std::move(below);
    place.parent = place.opened.descriptor();
  }
  place.last = std::string(name);
  return place;
}

absl::StatusOr<OwnedFolder::Look> OwnedFolder::LookAt(std::string_view name) const {
  const absl::StatusOr<Place> place = Find(name);
  if (absl::IsNotFound(place.status())) return Look{};
  if (!place.ok()) return place.status();
  struct stat facts;
  if (::fstatat(place->parent, place->last.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return Look{};
    return IoStatus("look at", place->path, errno);
  }
  if (S_ISDIR(facts.st_mode)) return Look{Kind::kFolder};
  if (!S_ISREG(facts.st_mode)) return Look{Kind::kOther};
  return Look{Kind::kFile, static_cast<uint64_t>(facts.st_size)};
}

absl::StatusOr<std::string> OwnedFolder::Read(std::string_view name, uint64_t max_bytes) const {
  ASSIGN_OR_RETURN(const Place place, Find(name));
  const int fd =
      ::openat(place.parent, place.last.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return IoStatus("open", place.path, errno);
  const File file(fd, place.path);
  ASSIGN_OR_RETURN(const uint64_t size, file.Size());
  std::string text(std::min(size, max_bytes), '\0');
  ASSIGN_OR_RETURN(const size_t got,
                   file.ReadAt(0, std::as_writable_bytes(std::span(text.data(), text.size()))));
  text.resize(got);
  return text;
}

absl::StatusOr<std::vector<std::string>> OwnedFolder::List(std::string_view name) const {
  const absl::StatusOr<Place> place = Find(name);
  if (absl::IsNotFound(place.status())) return std::vector<std::string>();
  if (!place.ok()) return place.status();
  const absl::StatusOr<File> folder = OpenBelow(place->parent, place->last, place->path);
  if (absl::IsNotFound(folder.status())) return std::vector<std::string>();
  if (!folder.ok()) return folder.status();
  absl::StatusOr<std::vector<std::string>> names = ListOpen(*folder);
  if (names.ok()) std::sort(names->begin(), names->end());
  return names;
}

absl::Status OwnedFolder::RemoveFile(std::string_view name) const {
  const absl::StatusOr<Place> place = Find(name);
  if (absl::IsNotFound(place.status())) return absl::OkStatus();
  if (!place.ok()) return place.status();
  if (::unlinkat(place->parent, place->last.c_str(), 0) == 0 || errno == ENOENT)
    return absl::OkStatus();
  if (errno == EISDIR) return NotOurKind(place->path, "folder", "file");
  return IoStatus("remove", place->path, errno);
}

absl::Status OwnedFolder::RemoveEmptyFolder(std::string_view name) const {
  const absl::StatusOr<Place> place = Find(name);
  if (absl::IsNotFound(place.status())) return absl::OkStatus();
  if (!place.ok()) return place.status();
  if (::unlinkat(place->parent, place->last.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT ||
      errno == ENOTEMPTY || errno == EEXIST) {
    return absl::OkStatus();
  }
  if (errno == ENOTDIR) return NotOurKind(place->path, "link or a file", "folder");
  return IoStatus("remove", place->path, errno);
}

absl::Status OwnedFolder::RemoveTree(std::string_view name) const {
  const absl::StatusOr<Place> place = Find(name);
  if (absl::IsNotFound(place.status())) return absl::OkStatus();
  if (!place.ok()) return place.status();
  if (::unlinkat(place->parent, place->last.c_str(), 0) == 0 || errno == ENOENT)
    return absl::OkStatus();
  if (errno != EISDIR) return IoStatus("remove", place->path, errno);
  return RemoveFolder(place->parent, place->last, place->path, 1);
}

absl::Status OwnedFolder::Replace(std::string_view from, std::string_view to) const {
  ASSIGN_OR_RETURN(const Place source, Find(from));
  ASSIGN_OR_RETURN(const Place target, Find(to));
  if (::renameat(source.parent, source.last.c_str(), target.parent, target.last.c_str()) == 0) {
    return absl::OkStatus();
  }
  if (errno == EISDIR || errno == ENOTEMPTY || errno == EEXIST)
    return NotOurKind(target.path, "folder", "file");
  return IoStatus("rename to", target.path, errno);
}

}  // namespace shardpack

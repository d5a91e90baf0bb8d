#include "converters/publishing/pack_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "converters/publishing/pack_names.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

bool IsUnsupported(int error) {
  return error == ENOLCK || error == ENOSYS || error == EINVAL || error == EOPNOTSUPP;
}

}  // namespace

absl::Status CheckPackFolder(const std::string& dataset) {
  const auto check = [&](std::string_view name, mode_t kind, const char* what) {
    const std::string path = absl::StrCat(dataset, "/", std::string(name));
    struct stat facts;
    if (::lstat(path.c_str(), &facts) != 0) {
      return errno == ENOENT || errno == ENOTDIR ? absl::OkStatus()
                                                 : IoStatus("look at", path, errno);
    }
    return (facts.st_mode & S_IFMT) == kind
               ? absl::OkStatus()
               : absl::FailedPreconditionError(absl::StrCat(EscapeForTerminal(path), what));
  };
  for (const std::string_view name :
       {kPackFolder, kStageFolder, kOwnersFolder, kLeaseFolder, kFailedFolder}) {
    RETURN_IF_ERROR(
        check(name, S_IFDIR, " is a link or a file, where pack has a folder; remove it by hand"));
  }
  constexpr char kNoFile[] =
      " is a link or a folder, where pack has a file; move it away and run again";
  for (const std::string_view name : kBuildNotes) {
    RETURN_IF_ERROR(check(name, S_IFREG, kNoFile));
  }
  RETURN_IF_ERROR(check(kLockName, S_IFREG, kNoFile));
  return check(kIndexMark, S_IFREG, kNoFile);
}

// An OFD lock belongs to the open file: it ends with the process, for any reason.
absl::StatusOr<File> LockPackFolder(const std::string& dataset, bool needed) {
  RETURN_IF_ERROR(CheckPackFolder(dataset));
  const auto conflict = [&](const std::string& why) {
    return absl::FailedPreconditionError(absl::StrCat(EscapeForTerminal(dataset), " ", why));
  };
  const std::string path = absl::StrCat(dataset, "/", std::string(kLockName));
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) return IoStatus("open", path, errno);
  File file(fd, path);
  struct flock whole = {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (::fcntl(fd, F_OFD_SETLK, &whole) != 0) {
    if (errno == EAGAIN || errno == EACCES) return conflict("is locked by another run of pack");
    if (needed || !IsUnsupported(errno)) return IoStatus("lock", path, errno);
  }
  // The run that held it may have finished and removed the folder between our open and our lock.
  struct stat opened, named = {};
  if (::fstat(fd, &opened) != 0) return IoStatus("look at", path, errno);
  if (::stat(path.c_str(), &named) != 0 && errno != ENOENT) return IoStatus("look at", path, errno);
  if (opened.st_ino != named.st_ino || opened.st_dev != named.st_dev) {
    return conflict("was finished by another run of pack just now");
  }
  return file;
}

absl::StatusOr<File> SharePackFolder(const std::string& dataset) {
  RETURN_IF_ERROR(CheckPackFolder(dataset));
  const std::string path = absl::StrCat(dataset, "/", std::string(kLockName));
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) {
    if (errno == ENOENT) return File();
    return IoStatus("open", path, errno);
  }
  File file(fd, path);
  struct flock whole = {};
  whole.l_type = F_RDLCK;
  whole.l_whence = SEEK_SET;
  if (::fcntl(fd, F_OFD_SETLK, &whole) == 0) return file;
  if (errno == EAGAIN || errno == EACCES) {
    return absl::FailedPreconditionError(
        absl::StrCat(EscapeForTerminal(dataset), " is locked by another run of pack"));
  }
  if (IsUnsupported(errno)) return File();
  return IoStatus("lock", path, errno);
}

}  // namespace shardpack

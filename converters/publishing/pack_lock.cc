#include "converters/publishing/pack_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "converters/publishing/conflict.h"
#include "converters/publishing/pack_names.h"
#include "formats/io/same_file.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr int kLockTries = 100;

bool IsUnsupported(int error) {
  return error == ENOLCK || error == ENOSYS || error == EINVAL || error == EOPNOTSUPP;
}

// An OFD lock belongs to the open file: it ends with the process, for any reason. 0, or the error.
int TryLock(int fd, short type) {
  struct flock whole = {};
  whole.l_type = type;
  whole.l_whence = SEEK_SET;
  return ::fcntl(fd, F_OFD_SETLK, &whole) == 0 ? 0 : errno;
}

// Whether the open file still has this name.
absl::StatusOr<bool> IsNamed(int fd, const std::string& path) {
  struct stat opened, named = {};
  if (::fstat(fd, &opened) != 0) return IoStatus("look at", path, errno);
  if (::stat(path.c_str(), &named) != 0 && errno != ENOENT) return IoStatus("look at", path, errno);
  return IsSameFile(opened, named);
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
    return (facts.st_mode & S_IFMT) == kind ? absl::OkStatus() : Conflict(path, what);
  };
  for (const std::string_view name :
       {kPackFolder, kStageFolder, kOwnersFolder, kLeaseFolder, kFailedFolder}) {
    RETURN_IF_ERROR(
        check(name, S_IFDIR, "is a link or a file, where pack has a folder; remove it by hand"));
  }
  constexpr char kNoFile[] =
      "is a link or a folder, where pack has a file; move it away and run again";
  for (const std::string_view name : kBuildNotes) {
    RETURN_IF_ERROR(check(name, S_IFREG, kNoFile));
  }
  RETURN_IF_ERROR(check(kLockName, S_IFREG, kNoFile));
  return check(kIndexMark, S_IFREG, kNoFile);
}

absl::StatusOr<File> LockPackFolder(const std::string& dataset, bool needed) {
  RETURN_IF_ERROR(CheckPackFolder(dataset));
  const std::string path = absl::StrCat(dataset, "/", std::string(kLockName));
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) return IoStatus("open", path, errno);
  File file(fd, path);
  const int error = TryLock(fd, F_WRLCK);
  if (error == EAGAIN || error == EACCES)
    return Conflict(dataset, "is locked by another run of pack");
  if (error != 0 && (needed || !IsUnsupported(error))) return IoStatus("lock", path, error);
  // The run that held it may have finished and removed the folder between our open and our lock.
  ASSIGN_OR_RETURN(const bool named, IsNamed(fd, path));
  if (!named) {
    return Conflict(dataset, "was finished by another run of pack just now");
  }
  return file;
}

absl::StatusOr<SharedPackFolder> SharePackFolder(const std::string& dataset) {
  RETURN_IF_ERROR(CheckPackFolder(dataset));
  const std::string path = absl::StrCat(dataset, "/", std::string(kLockName));
  for (int tries = 0; tries < kLockTries; ++tries) {
    SharedPackFolder shared;
    // For reading: it may belong to another user of the folder.
    int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT) {
      fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
      if (fd < 0 && errno == EEXIST) continue;  // another run was first
      // No folder, or one in which no run can lock anything.
      if (fd < 0 && (errno == ENOENT || errno == EACCES || errno == EROFS)) return shared;
      shared.created = fd >= 0;
    }
    if (fd < 0) return IoStatus("open", path, errno);
    shared.file = File(fd, path);
    const int error = TryLock(fd, F_RDLCK);
    if (error == EAGAIN || error == EACCES) {
      return Conflict(dataset, "is locked by another run of pack");
    }
    if (error != 0 && !IsUnsupported(error)) return IoStatus("lock", path, error);
    ASSIGN_OR_RETURN(const bool named, IsNamed(fd, path));
    if (named) return shared;  // else its holder has just removed it
  }
  return absl::FailedPreconditionError(
      absl::StrCat(EscapeForTerminal(dataset), " is locked by other runs of pack again and again"));
}

void UndoSharing(const std::string& dataset, SharedPackFolder shared) {
  if (!shared.created || !shared.file.is_open()) return;
  const std::string path = absl::StrCat(dataset, "/", std::string(kLockName));
  // Fails while others share it: it is theirs, too.
  if (TryLock(shared.file.descriptor(), F_WRLCK) != 0) return;
  if (IsNamed(shared.file.descriptor(), path).value_or(false)) ::unlink(path.c_str());
}

}  // namespace shardpack

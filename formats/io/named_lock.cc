#include "formats/io/named_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "formats/io/same_file.h"

namespace shardpack {

absl::StatusOr<bool> LockNamed(const File& file, int folder, const std::string& name) {
  if (::flock(file.descriptor(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return false;
    const absl::Status failed = IoStatus("lock", file.path(), errno);
    return absl::Status(failed.code(),
                        absl::StrCat(std::string(failed.message()),
                                     "; where there are no locks, two runs could write over each "
                                     "other: use a folder of another file system"));
  }
  struct stat opened, named;
  if (::fstat(file.descriptor(), &opened) != 0) return IoStatus("look at", file.path(), errno);
  if (::fstatat(folder, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return false;
    return IoStatus("look at", file.path(), errno);
  }
  return IsSameFile(opened, named);
}

}  // namespace shardpack

#include "converters/sources/folder_access.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <thread>

namespace shardpack {
namespace {

FolderSyscalls& CallsOfFolders() {
  static FolderSyscalls calls = {
      .getdents = [](int fd, void* buffer, size_t bytes) -> ssize_t {
        return syscall(SYS_getdents64, fd, buffer, bytes);
      },
      .openat = [](int folder, const char* name, int flags) { return openat(folder, name, flags); },
      .fstatat = [](int folder, const char* name, struct stat* out,
                    int flags) { return fstatat(folder, name, out, flags); },
      .read = [](int fd, void* buffer, size_t bytes) { return read(fd, buffer, bytes); },
  };
  return calls;
}

}  // namespace

FolderSyscalls& FolderSyscallsForTesting() { return CallsOfFolders(); }

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

int OpenAt(int folder, const char* name, int flags) {
  auto pause = std::chrono::milliseconds(1);
  for (;;) {
    const int fd = CallsOfFolders().openat(folder, name, flags | O_CLOEXEC);
    if (fd >= 0) return fd;
    if (errno == EINTR) continue;
    const bool scarce = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
    if (!scarce || pause.count() > 64) return -1;
    const int error = errno;
    std::this_thread::sleep_for(pause);
    pause *= 2;
    errno = error;
  }
}

int OpenBelow(int root, const std::string& path, int flags) {
  if (path.empty()) return OpenAt(root, ".", flags);
  // The kernel takes paths below PATH_MAX; a longer one is opened in pieces that end at a slash.
  Descriptor folder;
  size_t begin = 0;
  while (path.size() - begin >= PATH_MAX) {
    const size_t slash = path.rfind('/', begin + PATH_MAX - 2);
    if (slash == std::string::npos || slash < begin) {
      errno = ENAMETOOLONG;
      return -1;
    }
    Descriptor next(OpenAt(folder.ok() ? folder.get() : root,
                           path.substr(begin, slash - begin).c_str(), O_PATH | O_DIRECTORY));
    if (!next.ok()) return -1;
    folder = std::move(next);
    begin = slash + 1;
  }
  const int opened = OpenAt(folder.ok() ? folder.get() : root, path.c_str() + begin, flags);
  const int error = errno;
  folder = Descriptor();
  errno = error;
  return opened;
}

std::optional<std::string> DescriptorPath(int fd) {
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  std::string path(2 * PATH_MAX, '\0');
  const ssize_t length = readlink(link.c_str(), path.data(), path.size());
  if (length <= 0 || path[0] != '/') return std::nullopt;
  path.resize(static_cast<size_t>(length));
  return path;
}

bool IsBelow(std::string_view root, std::string_view path) {
  if (root == "/") return path.starts_with('/');
  return path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
}

}  // namespace shardpack

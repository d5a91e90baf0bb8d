// Folder access: opens entries below a root folder, even with very long paths or when the process
// is short of descriptors.
//
//   const int fd = OpenBelow(root, "cat/7.jpg", O_RDONLY | O_NONBLOCK);   // -1 and errno
//   std::optional<std::string> target = DescriptorPath(fd);
//   bool inside = IsBelow("/data/train", *target);
//
// Internal to the folder source.
//
// Lifetime: the caller closes what is opened.
// Thread-safety: any thread.
// Errors: errno. EINTR is retried; running out of descriptors or memory (EMFILE, ENFILE, ENOMEM) is
// retried for about 0.1 s.
#ifndef SHARDPACK_CONVERTERS_SOURCES_FOLDER_ACCESS_H_
#define SHARDPACK_CONVERTERS_SOURCES_FOLDER_ACCESS_H_

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace shardpack {

// A descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();

  bool ok() const { return fd_ >= 0; }
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// As openat, with the retries above.
int OpenAt(int folder, const char* name, int flags);

// As openat with a path of any length below `root`; "" is the root itself. O_NOFOLLOW refuses a
// link only as the last component.
int OpenBelow(int root, const std::string& path, int flags);

// The path of the open file, every link resolved; nullopt if the system does not provide it.
std::optional<std::string> DescriptorPath(int fd);

// Whether `path` is `root` or below it; both are absolute and resolved.
bool IsBelow(std::string_view root, std::string_view path);

// "a" for "a/b", and "", the root, for "a".
inline std::string_view FolderAbove(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == path.npos ? std::string_view() : path.substr(0, slash);
}

// The system calls of the folder source; tests replace them to inject faults. Not for production
// code.
struct FolderSyscalls {
  ssize_t (*getdents)(int fd, void* buffer, size_t bytes);
  int (*openat)(int folder, const char* name, int flags);
  int (*fstatat)(int folder, const char* name, struct stat* out, int flags);
  ssize_t (*read)(int fd, void* buffer, size_t bytes);
};
FolderSyscalls& FolderSyscallsForTesting();

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_FOLDER_ACCESS_H_

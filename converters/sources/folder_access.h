// Folder access: opening what lies below a root folder, whatever the length of its path and the
// state of the process.
//
//   const int fd = OpenBelow(root, "cat/7.jpg", O_RDONLY | O_NONBLOCK);   // -1 and errno
//   std::optional<std::string> target = DescriptorPath(fd);
//   bool inside = IsBelow("/data/train", *target);
//
// Lifetime: the caller closes what is opened.
// Thread-safety: any thread.
// Errors: errno. EINTR is retried, a lack of descriptors or memory (EMFILE, ENFILE, ENOMEM) for
// about 0.1 s. Internal to the folder source.
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

// As openat with a path of any length below `root`; "" is the root itself. Only the last component
// can be refused as a link by O_NOFOLLOW.
int OpenBelow(int root, const std::string& path, int flags);

// Where the open file lies, every link resolved; nullopt when the system does not say.
std::optional<std::string> DescriptorPath(int fd);

// Whether `path` is `root` or lies in it; both absolute and resolved.
bool IsBelow(std::string_view root, std::string_view path);

// The system calls of the folder source, replaceable in tests to inject faults. Not for production
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

#include "formats/io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "formats/io/error_facts.h"
#include "formats/io/escape.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

template <typename Call>
auto RetryInterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

// NFS and others reject all flags of renameat2 with EINVAL. link() does not replace either. If
// there are no hard links, and for folders, there is a gap between the existence check and the
// rename, which the dataset's lock covers.
absl::Status RenameWhereFlagsAreUnknown(const std::string& from, const std::string& to) {
  if (::link(from.c_str(), to.c_str()) == 0) {
    if (::unlink(from.c_str()) == 0) return absl::OkStatus();
    return IoStatus("remove", from, errno);
  }
  if (errno != EPERM && errno != EOPNOTSUPP && errno != EMLINK && errno != ENOSYS) {
    return IoStatus("rename to", to, errno);
  }
  struct stat facts;
  if (::lstat(to.c_str(), &facts) == 0) return IoStatus("rename to", to, EEXIST);
  if (errno != ENOENT || ::rename(from.c_str(), to.c_str()) != 0) {
    return IoStatus("rename to", to, errno);
  }
  return absl::OkStatus();
}

// Never remove what a path built from an empty name refers to.
absl::Status CheckNamesAnEntry(std::string_view path) {
  const std::string_view last = path.substr(path.rfind('/') + 1);
  if (!last.empty() && last != "." && last != "..") return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", EscapeForTerminal(path), "\" names no file to remove; nothing was removed"));
}

// The only mapping of error numbers; IsAboutThePath is derived from the code.
absl::StatusCode CodeOf(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::StatusCode::kResourceExhausted;
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:   // a link to itself
    case ENXIO:   // a socket
    case ENODEV:  // a device without a driver
    case ENAMETOOLONG:
      return absl::StatusCode::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::StatusCode::kPermissionDenied;
    case EEXIST:
      return absl::StatusCode::kAlreadyExists;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

absl::StatusOr<File> Open(const std::string& path, int flags, std::string_view operation) {
  const int fd = RetryInterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0666); });
  if (fd < 0) return IoStatus(operation, path, errno);
  return File(fd, path);
}

}  // namespace

Syscalls& SyscallsForTesting() {
  static Syscalls calls = {::pread,     ::preadv2, ::writev,   ::pwritev,
                           ::fdatasync, ::close,   ::renameat2};
  return calls;
}

std::string EscapeForTerminal(std::string_view text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t harmful = text[0] == '\\' ? 1 : HarmfulLength(text);
    for (const char c : text.substr(0, harmful)) {
      const auto byte = static_cast<unsigned char>(c);
      absl::StrAppend(&out, "\\x", std::string(1, kDigits[byte >> 4]),
                      std::string(1, kDigits[byte & 15]));
    }
    const size_t length = harmful > 0 ? harmful : Utf8SequenceLength(text);
    if (harmful == 0) out.append(text.substr(0, length));
    text.remove_prefix(length);
  }
  return out;
}

bool IsAboutThePath(int error_number) {
  return IsAboutThePath(absl::Status(CodeOf(error_number), ""));
}

bool IsAboutThePath(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsPermissionDenied(status) || absl::IsDataLoss(status) ||
         absl::IsOutOfRange(status) || absl::IsInvalidArgument(status);
}

absl::Status IoStatus(std::string_view operation, std::string_view path, int error_number) {
  std::string message = absl::StrCat(std::string(operation), " ", EscapeForTerminal(path), ": ",
                                     std::generic_category().message(error_number));
  if (error_number == EMFILE) absl::StrAppend(&message, " (ulimit -n says how many may be open)");
  if (error_number == EFBIG)
    absl::StrAppend(&message, " (ulimit -f says how large a file may become)");
  absl::Status status = WithFacts(absl::Status(CodeOf(error_number), message),
                                  {.system_errno = error_number, .path = std::string(path)});
  // For IsLackOfResources.
  if (error_number == EMFILE || error_number == ENFILE || error_number == ENOMEM)
    status.SetPayload("shardpack/lack-of-resources", absl::Cord());
  return status;
}

File::File(File&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}

File& File::operator=(File&& other) noexcept {
  if (this != &other) {
    if (descriptor_ >= 0) SyscallsForTesting().close(descriptor_);
    descriptor_ = std::exchange(other.descriptor_, -1);
    path_ = std::move(other.path_);
  }
  return *this;
}

File::~File() {
  if (descriptor_ >= 0) SyscallsForTesting().close(descriptor_);
}

absl::StatusOr<File> File::OpenRead(const std::string& path) {
  // If the path is a FIFO or a device, O_NONBLOCK keeps open() from blocking; regular files ignore
  // it.
  return Open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, "open");
}
absl::StatusOr<File> File::OpenDirectory(const std::string& path) {
  return Open(path, O_RDONLY | O_DIRECTORY, "open folder");
}
absl::StatusOr<File> File::CreateExclusive(const std::string& path) {
  return Open(path, O_RDWR | O_CREAT | O_EXCL, "create");
}

absl::StatusOr<uint64_t> File::Size() const {
  struct stat facts;
  if (::fstat(descriptor_, &facts) != 0) return IoStatus("stat", path_, errno);
  return static_cast<uint64_t>(facts.st_size);
}

absl::StatusOr<size_t> File::ReadAt(uint64_t offset, std::span<std::byte> into) const {
  size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = RetryInterrupted([&] {
      return SyscallsForTesting().pread(descriptor_, into.data() + done, into.size() - done,
                                        static_cast<off_t>(offset + done));
    });
    if (got < 0) {
      return IoStatus(absl::StrCat("read at offset ", offset + done, " of"), path_, errno);
    }
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

absl::Status File::ReadExactlyAt(uint64_t offset, std::span<std::byte> into) const {
  ASSIGN_OR_RETURN(size_t got, ReadAt(offset, into));
  if (got != into.size()) {
    return absl::OutOfRangeError(absl::StrCat(EscapeForTerminal(path_), " ends at offset ",
                                              offset + got, ", expected ", into.size(),
                                              " bytes at offset ", offset));
  }
  return absl::OkStatus();
}

bool File::ReadCachedAt(uint64_t offset, std::span<const iovec> parts) const {
  size_t wanted = 0;
  for (const iovec& part : parts) wanted += part.iov_len;
  const ssize_t got =
      SyscallsForTesting().preadv2(descriptor_, parts.data(), static_cast<int>(parts.size()),
                                   static_cast<off_t>(offset), RWF_NOWAIT);
  return got >= 0 && static_cast<size_t>(got) == wanted;
}

absl::Status File::ReadExactlyAt(uint64_t offset, std::span<const iovec> parts) const {
  size_t wanted = 0;
  for (const iovec& part : parts) wanted += part.iov_len;
  const ssize_t got = RetryInterrupted([&] {
    return SyscallsForTesting().preadv2(descriptor_, parts.data(), static_cast<int>(parts.size()),
                                        static_cast<off_t>(offset), 0);
  });
  if (got >= 0 && static_cast<size_t>(got) == wanted) return absl::OkStatus();
  // Short or failed: read part by part, which ends with the right error.
  for (const iovec& part : parts) {
    RETURN_IF_ERROR(
        ReadExactlyAt(offset, std::span(static_cast<std::byte*>(part.iov_base), part.iov_len)));
    offset += part.iov_len;
  }
  return absl::OkStatus();
}

absl::Status File::Write(std::span<const Bytes> parts) { return WriteParts(parts, nullptr); }

absl::Status File::WriteAt(uint64_t offset, std::span<const Bytes> parts) const {
  return WriteParts(parts, &offset);
}

// Without `offset`, writes at the current file position.
absl::Status File::WriteParts(std::span<const Bytes> parts, const uint64_t* offset) const {
  constexpr size_t kMaxVectors = 64;  // well below IOV_MAX
  std::array<iovec, kMaxVectors> vectors;
  size_t part = 0, skip = 0;  // `skip` bytes of parts[part] are already written
  uint64_t at = offset != nullptr ? *offset : 0;
  while (part < parts.size()) {
    size_t count = 0;
    for (size_t i = part; i < parts.size() && count < kMaxVectors; ++i) {
      const Bytes rest = parts[i].subspan(i == part ? skip : 0);
      if (rest.empty()) continue;
      vectors[count++] = {const_cast<std::byte*>(rest.data()), rest.size()};
    }
    if (count == 0) break;
    ssize_t wrote = RetryInterrupted([&] {
      const int number = static_cast<int>(count);
      return offset == nullptr ? SyscallsForTesting().writev(descriptor_, vectors.data(), number)
                               : SyscallsForTesting().pwritev(descriptor_, vectors.data(), number,
                                                              static_cast<off_t>(at));
    });
    if (wrote < 0) return IoStatus("write", path_, errno);
    // Never seen on a regular file, but would otherwise loop forever.
    if (wrote == 0) return IoStatus("write", path_, EIO);
    at += static_cast<uint64_t>(wrote);
    while (part < parts.size() && static_cast<size_t>(wrote) >= parts[part].size() - skip) {
      wrote -= static_cast<ssize_t>(parts[part].size() - skip);
      ++part;
      skip = 0;
    }
    skip += static_cast<size_t>(wrote);
  }
  return absl::OkStatus();
}

absl::Status File::SyncData() const {
  if (SyscallsForTesting().fdatasync(descriptor_) != 0) return IoStatus("sync", path_, errno);
  return absl::OkStatus();
}

absl::Status File::Sync() const {
  if (::fsync(descriptor_) != 0) return IoStatus("sync", path_, errno);
  return absl::OkStatus();
}

absl::Status File::Close() {
  if (descriptor_ < 0) return absl::OkStatus();
  // The descriptor is gone even if close() reports EINTR (Linux close(2)), so never retry.
  if (SyscallsForTesting().close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR) {
    return IoStatus("close", path_, errno);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadWholeFile(const std::string& path, uint64_t limit_bytes) {
  ASSIGN_OR_RETURN(File file, File::OpenRead(path));
  struct stat facts;
  if (::fstat(file.descriptor(), &facts) != 0) return IoStatus("stat", path, errno);
  if (!S_ISREG(facts.st_mode)) {  // an endless file would fill the memory
    return absl::InvalidArgumentError(
        absl::StrCat(EscapeForTerminal(path), " is not a regular file"));
  }
  const auto size = static_cast<uint64_t>(facts.st_size);
  if (size > limit_bytes) {
    return absl::OutOfRangeError(
        absl::StrCat(EscapeForTerminal(path), " has ", size, " bytes, the limit is ", limit_bytes));
  }
  std::string text(size, '\0');
  ASSIGN_OR_RETURN(size_t got,
                   file.ReadAt(0, std::as_writable_bytes(std::span(text.data(), text.size()))));
  text.resize(got);
  return text;
}

absl::Status SyncDirectory(const std::string& path) {
  absl::StatusOr<File> folder = File::OpenDirectory(path);
  return folder.ok() ? folder->Sync() : folder.status();
}

absl::Status RenameNoReplace(const std::string& from, const std::string& to) {
  struct stat before;
  const bool known = ::lstat(from.c_str(), &before) == 0;
  absl::Status status;
  if (SyscallsForTesting().renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(),
                                     RENAME_NOREPLACE) == 0)
    return status;
  if (errno != EINVAL && errno != ENOSYS) {
    status = IoStatus("rename to", to, errno);
  } else {
    status = RenameWhereFlagsAreUnknown(from, to);
  }
  // A network file system repeats a call whose reply was lost, and the repetition then sees the
  // result of the first call.
  if (!absl::IsAlreadyExists(status) && !absl::IsNotFound(status)) return status;
  struct stat after;
  if (!known || ::lstat(to.c_str(), &after) != 0) return status;
  if (before.st_dev != after.st_dev || before.st_ino != after.st_ino) return status;
  // After a link(), the first name still exists.
  return ::unlink(from.c_str()) == 0 || errno == ENOENT ? absl::OkStatus()
                                                        : IoStatus("remove", from, errno);
}

absl::Status RemoveFile(const std::string& path) {
  RETURN_IF_ERROR(CheckNamesAnEntry(path));
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return IoStatus("remove", path, errno);
  return absl::OkStatus();
}

absl::Status MakeDirectory(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) == 0) return absl::OkStatus();
  const int error_number = errno;
  if (error_number != EEXIST) return IoStatus("create folder", path, error_number);
  struct stat facts;
  if (::stat(path.c_str(), &facts) != 0) return IoStatus("look at", path, errno);
  if (S_ISDIR(facts.st_mode)) return absl::OkStatus();
  return IoStatus("create folder", path, EEXIST);
}

absl::Status RemoveTree(const std::string& path) {
  RETURN_IF_ERROR(CheckNamesAnEntry(path));
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error && error.value() != ENOENT) return IoStatus("remove", path, error.value());
  return absl::OkStatus();
}

}  // namespace shardpack

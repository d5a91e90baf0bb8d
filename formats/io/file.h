// File: an open file by descriptor, with the retries and checks that plain system calls lack.
//
//   absl::StatusOr<File> file = File::OpenRead("train-000000.tar");
//   absl::StatusOr<size_t> got = file->ReadAt(0, buffer);   // fewer bytes only at the file's end
//   absl::Status closed = file->Close();                    // the error of close() is not lost
//
// Lifetime: owns its descriptor; movable; the destructor closes without reporting.
// Thread-safety: const methods from any thread at once (positioned I/O only).
// Errors: IoStatus below; each names the operation and the path. EINTR and short transfers are
// retried inside.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_IO_FILE_H_
#define SHARDPACK_FORMATS_IO_FILE_H_

#include <sys/uio.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/io/bytes.h"

namespace shardpack {

// The Status of a failed system call: "<operation> <path>: <reason>", the path escaped for a
// terminal. ENOSPC, EDQUOT, EFBIG -> ResourceExhausted; ENOENT, ENOTDIR -> NotFound; EACCES, EPERM,
// EROFS -> PermissionDenied; EEXIST -> AlreadyExists; everything else -> Unavailable.
absl::Status IoStatus(std::string_view operation, std::string_view path, int error_number);

// Whether the error is a fact about that path (it is not there, may not be read, is no file), which
// the next run would find again. All others - a lack of descriptors, memory or space, a disk that
// fails - say nothing about it: who took them for a fact would lose data.
bool IsAboutThePath(int error_number);
// The same of a status of this file's functions.
bool IsAboutThePath(const absl::Status& status);

// `text` with control characters, backslashes and bytes that are not UTF-8 as \xNN: safe to print
// on a terminal.
std::string EscapeForTerminal(std::string_view text);

class File {
 public:
  File() = default;
  File(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  static absl::StatusOr<File> OpenRead(const std::string& path);
  static absl::StatusOr<File> OpenDirectory(const std::string& path);
  // Creates a file that must not exist, for reading and writing.
  static absl::StatusOr<File> CreateExclusive(const std::string& path);

  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }

  absl::StatusOr<uint64_t> Size() const;
  // Reads up to into.size() bytes; fewer only when the file ends first.
  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<std::byte> into) const;
  // Reads exactly into.size() bytes; OutOfRange when the file is shorter.
  absl::Status ReadExactlyAt(uint64_t offset, std::span<std::byte> into) const;
  // Reads into all parts, one behind the other, what lies in the page cache, without waiting for
  // the disk. True when that is all of it; false also for errors, which a read that waits will
  // tell.
  bool ReadCachedAt(uint64_t offset, std::span<const iovec> parts) const;
  // The same for exactly all parts, waiting; OutOfRange when the file is shorter.
  absl::Status ReadExactlyAt(uint64_t offset, std::span<const iovec> parts) const;
  // Writes all bytes of all parts, in order, at the descriptor's position.
  absl::Status Write(std::span<const Bytes> parts);
  // The same at an offset, without moving that position.
  absl::Status WriteAt(uint64_t offset, std::span<const Bytes> parts) const;
  absl::Status SyncData() const;  // fdatasync
  absl::Status Sync() const;      // fsync; what a directory needs
  absl::Status Close();

 private:
  absl::Status WriteParts(std::span<const Bytes> parts, const uint64_t* offset) const;

  int descriptor_ = -1;
  std::string path_;
};

// The whole file, which must be a regular one (InvalidArgument) and no larger than `limit_bytes`
// (OutOfRange).
absl::StatusOr<std::string> ReadWholeFile(const std::string& path, uint64_t limit_bytes);
// The folder's entry table reaches the disk.
absl::Status SyncDirectory(const std::string& path);
// Moves a file or folder to a name that must not exist (AlreadyExists if it does).
absl::Status RenameNoReplace(const std::string& from, const std::string& to);
absl::Status RemoveFile(const std::string& path);     // OK when it is not there
absl::Status MakeDirectory(const std::string& path);  // OK when it is there
// Removes a folder and all below it, following no link; OK when it is not there.
absl::Status RemoveTree(const std::string& path);

// The system calls under File and StagedFile, replaceable in tests to inject faults. Not for
// production code.
struct Syscalls {
  ssize_t (*pread)(int, void*, size_t, off_t);
  ssize_t (*preadv2)(int, const iovec*, int, off_t, int);
  ssize_t (*writev)(int, const iovec*, int);
  ssize_t (*pwritev)(int, const iovec*, int, off_t);
  int (*fdatasync)(int);
  int (*close)(int);
  int (*renameat2)(int, const char*, int, const char*, unsigned);
};
Syscalls& SyscallsForTesting();

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_IO_FILE_H_

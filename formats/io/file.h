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

// The Status of a failed system call: "<operation> <path>: <reason>", with the path escaped for a
// terminal. ENOSPC, EDQUOT, EFBIG -> ResourceExhausted; ENOENT, ENOTDIR -> NotFound; EACCES, EPERM,
// EROFS -> PermissionDenied; EEXIST -> AlreadyExists; everything else -> Unavailable.
absl::Status IoStatus(std::string_view operation, std::string_view path, int error_number);

// Whether the error is a property of that path (it is missing, unreadable or not a file), which the
// next run would see again. All other errors - out of descriptors, memory or space, a failing disk
// - say nothing about the path; treating them as its property would lose data.
bool IsAboutThePath(int error_number);
// The same for a status from this file's functions.
bool IsAboutThePath(const absl::Status& status);

// Writes control characters, backslashes and bytes that are not UTF-8 as \xNN, so that `text` is
// safe to print on a terminal.
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
  // Creates a file for reading and writing; it must not exist yet.
  static absl::StatusOr<File> CreateExclusive(const std::string& path);

  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }

  absl::StatusOr<uint64_t> Size() const;
  // Reads up to into.size() bytes; fewer only at the end of the file.
  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<std::byte> into) const;
  // Reads exactly into.size() bytes; OutOfRange if the file is shorter.
  absl::Status ReadExactlyAt(uint64_t offset, std::span<std::byte> into) const;
  // Reads the parts, one after the other, from the page cache only, without waiting for the disk.
  // True if all bytes were there. Also false on error; a blocking read reports it.
  bool ReadCachedAt(uint64_t offset, std::span<const iovec> parts) const;
  // The same, but blocking and for exactly all parts; OutOfRange if the file is shorter.
  absl::Status ReadExactlyAt(uint64_t offset, std::span<const iovec> parts) const;
  // Writes all bytes of all parts, in order, at the current file position.
  absl::Status Write(std::span<const Bytes> parts);
  // The same at an offset, without moving the file position.
  absl::Status WriteAt(uint64_t offset, std::span<const Bytes> parts) const;
  absl::Status SyncData() const;  // fdatasync
  absl::Status Sync() const;      // fsync; needed for a directory
  absl::Status Close();

 private:
  absl::Status WriteParts(std::span<const Bytes> parts, const uint64_t* offset) const;

  int descriptor_ = -1;
  std::string path_;
};

// Reads a whole file, which must be a regular one (InvalidArgument) and no larger than
// `limit_bytes` (OutOfRange).
absl::StatusOr<std::string> ReadWholeFile(const std::string& path, uint64_t limit_bytes);
// Flushes the folder's entries to disk.
absl::Status SyncDirectory(const std::string& path);
// Moves a file or folder to a name that must not exist (otherwise AlreadyExists).
absl::Status RenameNoReplace(const std::string& from, const std::string& to);
absl::Status RemoveFile(const std::string& path);     // OK if it does not exist
absl::Status MakeDirectory(const std::string& path);  // OK if it exists
// Removes a folder and everything below it without following links; OK if it does not exist.
absl::Status RemoveTree(const std::string& path);

// The system calls that File and StagedFile use, replaceable in tests to inject faults. Not for
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

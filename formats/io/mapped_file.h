// MappedFile: a whole file as bytes in memory, read-only.
//
//   absl::StatusOr<MappedFile> mapped = MappedFile::Open("train-000000.tar.pidx");
//   Bytes all = mapped->bytes();
//
// Lifetime: bytes() is valid as long as this object or one it was moved into.
// Thread-safety: const methods from any thread.
// Errors: Status when the file cannot be opened or mapped. A file that another process cuts short
// while it is mapped ends this process (SIGBUS): only files of our own making, verified by their
// hash, are mapped; shard bytes go through File::ReadAt.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_IO_MAPPED_FILE_H_
#define SHARDPACK_FORMATS_IO_MAPPED_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "formats/io/bytes.h"
#include "formats/io/file.h"

namespace shardpack {

class MappedFile {
 public:
  static absl::StatusOr<MappedFile> Open(const std::string& path);
  static absl::StatusOr<MappedFile> Map(const File& file);  // which may then be closed

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  Bytes bytes() const { return bytes_; }

 private:
  explicit MappedFile(Bytes bytes) : bytes_(bytes) {}
  void Unmap();

  Bytes bytes_;
};

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_IO_MAPPED_FILE_H_

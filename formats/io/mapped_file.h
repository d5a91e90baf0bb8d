// MappedFile: a whole file as bytes in memory, read-only.
//
//   absl::StatusOr<MappedFile> mapped = MappedFile::Open("train-000000.tar.pidx");
//   Bytes all = mapped->bytes();
//
// Lifetime: bytes() is valid as long as this object, or the one it was moved into.
// Thread-safety: const methods from any thread.
// Errors: Status if the file cannot be opened or mapped. If another process truncates the file
// while it is mapped, this process dies of SIGBUS. Map only files that we wrote and verify by hash;
// read shard bytes with File::ReadAt.
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
  static absl::StatusOr<MappedFile> Map(const File& file);  // the file may be closed afterwards

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

// StagedFile: a new file that nobody sees under its final name before it is whole.
//
//   auto staged = StagedFile::Create("OUT/.pack/stage/train-000000.tar");
//   absl::Status written = (*staged)->Append(parts);  ...  (*staged)->Flush();
//   (*staged)->SyncData();
//   absl::Status published = (*staged)->Publish("OUT/train-000000.tar");   // never replaces
//
// Lifetime: the destructor removes the file unless Publish has succeeded.
// Thread-safety: one caller at a time.
// Errors: after a failed write or sync every later call answers the same error: such a file is
// discarded and built anew, never retried (a second fsync may report success for lost pages).
// Units: bytes.
#ifndef SHARDPACK_FORMATS_IO_STAGED_FILE_H_
#define SHARDPACK_FORMATS_IO_STAGED_FILE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/io/bytes.h"
#include "formats/io/file.h"

namespace shardpack {

class StagedFile {
 public:
  // Creates `path`, which must not exist.
  static absl::StatusOr<std::unique_ptr<StagedFile>> Create(const std::string& path);
  ~StagedFile();
  StagedFile(const StagedFile&) = delete;
  StagedFile& operator=(const StagedFile&) = delete;

  // Appends the parts in order. Small ones are gathered in a buffer; large ones go to the kernel
  // from where they lie. The parts are borrowed until the call returns.
  absl::Status Append(std::span<const Bytes> parts);
  absl::Status Append(Bytes part) { return Append(std::span(&part, 1)); }

  // Bytes appended so far, those in the buffer included; of a file that a library has written, its
  // size at the last Flush.
  uint64_t size() const { return size_; }
  // Where the file is now. A library that writes by path opens this one, and Append is then not
  // used.
  const std::string& path() const { return file_.path(); }
  // For reading back what Flush has handed to the kernel.
  const File& file() const { return file_; }

  absl::Status Flush();     // the buffer reaches the kernel
  absl::Status SyncData();  // Flush, then fdatasync
  // Flush, close, and rename to `final_path`, which must not exist. The caller syncs the folder.
  // Every later call is FailedPrecondition.
  absl::Status Publish(const std::string& final_path);

 private:
  explicit StagedFile(File file);
  absl::Status Remember(absl::Status status);

  File file_;
  std::vector<std::byte> buffer_;
  uint64_t size_ = 0;
  absl::Status failed_;
  bool published_ = false;
};

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_IO_STAGED_FILE_H_

// StagedFile: a new file that gets its final name only once it is complete.
//
//   auto staged = StagedFile::Create("OUT/.pack/stage/train-000000.tar");
//   absl::Status written = (*staged)->Append(parts);  ...  (*staged)->Flush();
//   (*staged)->SyncData();
//   absl::Status published = (*staged)->Publish("OUT/train-000000.tar");   // never replaces
//
// Lifetime: the destructor removes the file unless Publish succeeded.
// Thread-safety: one caller at a time.
// Errors: after a failed write or sync, every later call returns the same error. Discard the file
// and build it again; never retry (a second fsync may report success for lost pages).
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
  // Creates `path`, which must not exist yet.
  static absl::StatusOr<std::unique_ptr<StagedFile>> Create(const std::string& path);
  ~StagedFile();
  StagedFile(const StagedFile&) = delete;
  StagedFile& operator=(const StagedFile&) = delete;

  // Appends the parts in order. Small ones are buffered; large ones go to the kernel without a
  // copy. The parts are borrowed until the call returns.
  absl::Status Append(std::span<const Bytes> parts);
  absl::Status Append(Bytes part) { return Append(std::span(&part, 1)); }

  // Leaves a hole, which reads as zeros and takes no space; something is appended after it.
  absl::Status Skip(uint64_t bytes);

  // Bytes appended so far, including the buffer; for a file written by a library, its size at the
  // last Flush.
  uint64_t size() const { return size_; }
  // The current path. A library that writes by path opens it; Append is then not used.
  const std::string& path() const { return file_.path(); }
  // For reading back data that Flush has handed to the kernel.
  const File& file() const { return file_; }

  absl::Status Flush();  // hands the buffer to the kernel
  // Flush, and the kernel begins to write to the disk, which the caller does not wait for: a
  // SyncData that follows other work has little left to wait for.
  absl::Status StartSync();
  absl::Status SyncData();  // Flush, then fdatasync
  // Flushes, closes, and gives the file its second name, which must not exist yet; that it is this
  // very file already is not an error. The first name stays until the destructor. Every later call
  // returns FailedPrecondition.
  absl::Status Link(const std::string& final_path);
  // Flushes, closes, and renames to `final_path`, which must not exist. The caller syncs the
  // folder. Every later call returns FailedPrecondition.
  absl::Status Publish(const std::string& final_path);
  // The same in place of the file that may be there.
  absl::Status Replace(const std::string& final_path);

 private:
  using Rename = absl::Status (*)(const std::string& from, const std::string& to);

  explicit StagedFile(File file);
  absl::Status PublishBy(Rename rename, const std::string& final_path);
  absl::Status Remember(absl::Status status);

  File file_;
  std::vector<std::byte> buffer_;
  uint64_t size_ = 0;
  absl::Status failed_;
  bool published_ = false;
};

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_IO_STAGED_FILE_H_

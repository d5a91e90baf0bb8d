// PositionedOutput: writes at given offsets of a file that a StagedFile created, next to or below a
// library that lays out the file.
//
//   PositionedOutput out(staged);
//   const std::array parts = {head, payload};
//   absl::Status written = out.WriteAt(4096, parts);
//   absl::Status cut = out.Resize(8192);
//
// Lifetime: borrows the StagedFile.
// Thread-safety: one caller at a time.
// Errors: IoStatus; after a failed write every later call returns the same error and does nothing.
// EINTR and short transfers are retried.
// Units: bytes from the start of the file.
#ifndef SHARDPACK_FORMATS_HDF5_WRITING_POSITIONED_OUTPUT_H_
#define SHARDPACK_FORMATS_HDF5_WRITING_POSITIONED_OUTPUT_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "formats/io/bytes.h"
#include "formats/io/staged_file.h"

namespace shardpack {

class PositionedOutput {
 public:
  explicit PositionedOutput(StagedFile& file) : file_(file) {}

  // Writes the parts one after the other.
  absl::Status WriteAt(uint64_t offset, std::span<const Bytes> parts);
  // Bytes after the end of the file are zero.
  absl::Status ReadAt(uint64_t offset, std::span<std::byte> into);
  // Truncates or extends the file; added bytes are zero.
  absl::Status Resize(uint64_t bytes);

  const absl::Status& status() const { return failed_; }

 private:
  StagedFile& file_;
  absl::Status failed_;
};

// A range of known capacity in a PositionedOutput, filled from its beginning through a buffer.
// Thread-safety: one caller at a time.
// Errors: those of the output; the caller must not exceed the capacity.
class OutputRegion {
 public:
  OutputRegion(PositionedOutput& out, uint64_t offset, uint64_t capacity);

  uint64_t capacity() const { return capacity_; }
  uint64_t appended() const { return appended_; }
  absl::Status Append(Bytes part);
  absl::Status Flush();

 private:
  absl::Status Write(Bytes last);

  PositionedOutput& out_;
  uint64_t offset_;  // of the buffer's first byte
  uint64_t capacity_, appended_ = 0;
  std::vector<std::byte> buffer_;
};

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_HDF5_WRITING_POSITIONED_OUTPUT_H_

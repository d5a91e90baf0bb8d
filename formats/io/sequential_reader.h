// SequentialReader: reads a file once from start to end through a sliding window, computing its
// XXH3-128.
//
//   SequentialReader in(file, size);
//   absl::StatusOr<Bytes> header = in.Peek(512);     // fewer than 512 only at the end of the file
//   in.Skip(512);
//   absl::StatusOr<uint64_t> field_hash = in.HashNext(payload_bytes);
//   absl::StatusOr<Digest> digest = in.Finish();     // of the whole file, including skipped parts
//
// Lifetime: borrows `file`. The result of Peek is valid until the next call of a non-const method.
// Thread-safety: one caller at a time.
// Errors: Status of the reads; OutOfRange if the file is shorter than `size`, or, in Finish,
// longer.
// Memory: one block, or the largest Peek, which never exceeds the rest of the file.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_IO_SEQUENTIAL_READER_H_
#define SHARDPACK_FORMATS_IO_SEQUENTIAL_READER_H_

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/io/bytes.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"

namespace shardpack {

class SequentialReader {
 public:
  SequentialReader(const File& file, uint64_t size);

  // `hook` is called with the size of each block read; an error from it stops the reading. For
  // progress, and for stopping in the middle of a file.
  void OnBlock(std::function<absl::Status(uint64_t bytes)> hook) { on_block_ = std::move(hook); }

  const File& file() const { return file_; }
  uint64_t size() const { return size_; }
  uint64_t position() const { return window_offset_ + begin_; }  // of the next byte
  uint64_t remaining() const { return size_ - position(); }

  // Returns the next min(bytes, remaining()) bytes without consuming them.
  absl::StatusOr<Bytes> Peek(uint64_t bytes);
  // Consumes bytes; OutOfRange if fewer remain.
  absl::Status Skip(uint64_t bytes);
  // Consumes bytes and returns their XXH3-64.
  absl::StatusOr<uint64_t> HashNext(uint64_t bytes);
  // Reads the rest and returns the XXH3-128 of the whole file. position() is then size().
  absl::StatusOr<Digest> Finish();

 private:
  absl::Status Fill(size_t wanted);

  const File& file_;
  const uint64_t size_;
  std::vector<std::byte> window_;
  uint64_t window_offset_ = 0;  // file offset of window_[0]
  size_t begin_ = 0, end_ = 0;  // bytes read but not yet consumed
  DigestStream digest_;
  std::function<absl::Status(uint64_t)> on_block_;
};

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_IO_SEQUENTIAL_READER_H_

// PageWindow: random access to a file for a walk that mostly goes forward, so that most of the file
// is read only once.
//
//   PageWindow window(in);
//   window.FollowReader();
//   absl::StatusOr<Bytes> page = window.Read(7 * 4096, 4096);
//   absl::StatusOr<Bytes> next = window.Read(8 * 4096, 4096);   // `page` is invalid now
//
// After FollowReader, a read at or shortly after the position of the SequentialReader advances it.
// Any other read is a positioned read of its own.
//
// Lifetime: borrows the reader, which nobody else uses meanwhile; what Read returns is valid until
// the next Read.
// Thread-safety: one caller at a time.
// Errors: read errors. The caller requests only bytes within the file.
// Memory: the window and the reader's, or the largest Read.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_LMDB_READING_PAGE_WINDOW_H_
#define SHARDPACK_FORMATS_LMDB_READING_PAGE_WINDOW_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/io/bytes.h"
#include "formats/io/sequential_reader.h"

namespace shardpack {

class PageWindow {
 public:
  explicit PageWindow(SequentialReader& in) : in_(in) {}

  uint64_t size() const { return in_.size(); }
  void FollowReader() { follows_reader_ = true; }
  // offset + bytes <= size().
  absl::StatusOr<Bytes> Read(uint64_t offset, uint64_t bytes);

 private:
  SequentialReader& in_;
  bool follows_reader_ = false;
  uint64_t followed_end_ = 0;  // of the reads that advanced the reader
  std::vector<std::byte> buffer_;
  uint64_t ahead_bytes_ = 16 << 10;
  uint64_t begin_ = 0, end_ = 0;  // the file range in buffer_
};

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_LMDB_READING_PAGE_WINDOW_H_

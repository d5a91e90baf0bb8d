// PageWindow: positioned reads of a file through a window, for a walk that mostly goes forward.
//
//   PageWindow window(file, size);
//   absl::StatusOr<Bytes> page = window.Read(7 * 4096, 4096);
//   absl::StatusOr<Bytes> next = window.Read(8 * 4096, 4096);   // `page` is invalid now
//
// Lifetime: borrows the file; what Read returns is valid until the next Read.
// Thread-safety: one caller at a time.
// Errors: read errors. The caller requests only bytes within the file.
// Memory: the window, or the largest Read.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_LMDB_READING_PAGE_WINDOW_H_
#define SHARDPACK_FORMATS_LMDB_READING_PAGE_WINDOW_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/io/bytes.h"
#include "formats/io/file.h"

namespace shardpack {

class PageWindow {
 public:
  PageWindow(const File& file, uint64_t size) : file_(file), size_(size) {}

  uint64_t size() const { return size_; }
  // offset + bytes <= size().
  absl::StatusOr<Bytes> Read(uint64_t offset, uint64_t bytes);

 private:
  const File& file_;
  const uint64_t size_;
  std::vector<std::byte> buffer_;
  uint64_t ahead_bytes_ = 16 << 10;
  uint64_t begin_ = 0, end_ = 0;  // the file range in buffer_
};

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_LMDB_READING_PAGE_WINDOW_H_

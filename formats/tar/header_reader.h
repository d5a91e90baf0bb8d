// HeaderReader: the file access that a TarWalker needs, by positioned reads that skip the members'
// data.
//
//   HeaderReader in(file, size);
//   BasicTarWalker<HeaderReader> walker(in, "train-000000.tar", findings);
//   while (*walker.Next()) Use(walker.member());
//
// Lifetime: borrows the file; the result of Peek is valid until the next call.
// Thread-safety: one caller at a time.
// Errors: as SequentialReader.
// Memory: 4 KiB, or the largest Peek.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_TAR_HEADER_READER_H_
#define SHARDPACK_FORMATS_TAR_HEADER_READER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/io/bytes.h"
#include "formats/io/file.h"

namespace shardpack {

class HeaderReader {
 public:
  HeaderReader(const File& file, uint64_t size_bytes) : file_(file), size_(size_bytes) {}

  uint64_t size() const { return size_; }
  uint64_t position() const { return position_; }
  uint64_t remaining() const { return size_ - position_; }

  absl::StatusOr<Bytes> Peek(uint64_t bytes);
  absl::Status Skip(uint64_t bytes);

 private:
  const File& file_;
  const uint64_t size_;
  uint64_t position_ = 0;
  std::vector<std::byte> window_;
  uint64_t window_offset_ = 0;
};

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_TAR_HEADER_READER_H_

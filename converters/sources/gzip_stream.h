// GzipStream: what a gzip file holds, read from start to end, with its checksums verified.
// libarchive does not look at them, so that a flipped bit would change an image without a word.
// Internal to the archive source.
//
//   GzipStream in(file);
//   absl::StatusOr<size_t> got = in.Read(block);  // 0 at the end
//
// Lifetime: borrows the file.
// Thread-safety: one caller at a time.
// Errors: DataLoss, with the offset in the file, for what is damaged, cut, or followed by bytes
// that are not gzip; Status of the reads.
// Memory: zlib's, and one block.
// Units: bytes.
#ifndef SHARDPACK_CONVERTERS_SOURCES_GZIP_STREAM_H_
#define SHARDPACK_CONVERTERS_SOURCES_GZIP_STREAM_H_

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/io/file.h"

namespace shardpack {

class GzipStream {
 public:
  explicit GzipStream(const File& file);
  ~GzipStream();
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  static absl::StatusOr<bool> Is(const File& file);  // by its first bytes

  // The next bytes, up to out.size(); 0 at the end.
  absl::StatusOr<size_t> Read(std::span<std::byte> out);
  // Of the file: how far it has been taken.
  uint64_t place() const { return read_ - zlib_.avail_in; }

 private:
  absl::Status Fill();
  absl::StatusOr<bool> Another();  // stream after the one that has ended
  absl::Status Damaged(std::string_view why) const;

  const File& file_;
  z_stream zlib_ = {};
  bool has_memory_ = false, ended_ = false;
  uint64_t read_ = 0;  // offset of the next block
  std::vector<std::byte> block_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_GZIP_STREAM_H_

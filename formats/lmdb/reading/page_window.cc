#include "formats/lmdb/reading/page_window.h"

#include <algorithm>
#include <span>

#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

// Forward reads need few calls; other reads fetch little more than requested.
constexpr uint64_t kMaxBytes = 256 << 10, kMinBytes = 16 << 10;
// Bytes between entries, such as tree pages, that are read anyway for the hash of the file.
constexpr uint64_t kMaxSkipBytes = 256 << 10;

}  // namespace

absl::StatusOr<Bytes> PageWindow::Read(uint64_t offset, uint64_t bytes) {
  if (offset >= begin_ && offset <= end_ && bytes <= end_ - offset) {
    return Bytes(buffer_).subspan(offset - begin_, bytes);
  }
  if (follows_reader_ && offset >= in_.position() && offset <= followed_end_ + kMaxSkipBytes) {
    RETURN_IF_ERROR(in_.Skip(offset - in_.position()));
    followed_end_ = std::max(followed_end_, offset + bytes);
    return in_.Peek(bytes);
  }
  const bool forward = offset >= begin_ && offset <= end_ + kMaxBytes;
  ahead_bytes_ = forward ? std::min(ahead_bytes_ * 2, kMaxBytes) : kMinBytes;
  const uint64_t take = std::min(std::max(bytes, ahead_bytes_), size() - offset);
  if (buffer_.size() < take) buffer_.resize(take);
  begin_ = end_ = 0;
  RETURN_IF_ERROR(in_.file().ReadExactlyAt(offset, std::span(buffer_.data(), take)));
  begin_ = offset;
  end_ = offset + take;
  return Bytes(buffer_).first(bytes);
}

}  // namespace shardpack

#include "formats/hdf5/writing/positioned_output.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

// At this size the cost of a write is mostly its page-cache copy.
constexpr uint64_t kBufferBytes = 256 << 10;
// Below this size, copying into the buffer is cheaper than a separate vector entry.
constexpr size_t kGatherBytes = 32 << 10;

}  // namespace

absl::Status PositionedOutput::WriteAt(uint64_t offset, std::span<const Bytes> parts) {
  if (!failed_.ok()) return failed_;
  return failed_ = file_.file().WriteAt(offset, parts);
}

absl::Status PositionedOutput::ReadAt(uint64_t offset, std::span<std::byte> into) {
  if (!failed_.ok()) return failed_;
  absl::StatusOr<size_t> got = file_.file().ReadAt(offset, into);
  if (!got.ok()) return failed_ = got.status();
  std::fill(into.begin() + static_cast<ptrdiff_t>(*got), into.end(), std::byte{0});
  return absl::OkStatus();
}

absl::Status PositionedOutput::Resize(uint64_t bytes) {
  if (!failed_.ok()) return failed_;
  while (::ftruncate(file_.file().descriptor(), static_cast<off_t>(bytes)) != 0) {
    if (errno != EINTR) return failed_ = IoStatus("resize", file_.path(), errno);
  }
  return absl::OkStatus();
}

OutputRegion::OutputRegion(PositionedOutput& out, uint64_t offset, uint64_t capacity)
    : out_(out), offset_(offset), capacity_(capacity) {
  buffer_.reserve(std::min(capacity, kBufferBytes));
}

absl::Status OutputRegion::Append(Bytes part) {
  if (part.size() > capacity_ - appended_) {
    return absl::InternalError("more bytes than a region has room for");
  }
  appended_ += part.size();
  if (part.size() >= kGatherBytes) return Write(part);
  if (buffer_.size() + part.size() > kBufferBytes) {
    RETURN_IF_ERROR(Flush());
  }
  buffer_.insert(buffer_.end(), part.begin(), part.end());
  return absl::OkStatus();
}

absl::Status OutputRegion::Flush() { return Write({}); }

absl::Status OutputRegion::Write(Bytes last) {
  const std::array<Bytes, 2> both = {Bytes(buffer_), last};
  absl::Status written = out_.WriteAt(offset_, both);
  offset_ += buffer_.size() + last.size();
  buffer_.clear();
  return written;
}

}  // namespace shardpack

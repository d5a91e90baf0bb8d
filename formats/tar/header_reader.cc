#include "formats/tar/header_reader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace shardpack {
namespace {

// Covers the padding of one member, the next header, a small member and the header after it.
constexpr uint64_t kWindowBytes = 4096;

}  // namespace

absl::StatusOr<Bytes> HeaderReader::Peek(uint64_t bytes) {
  const uint64_t wanted = std::min(bytes, remaining());
  const bool there =
      position_ >= window_offset_ && position_ + wanted <= window_offset_ + window_.size();
  if (!there) {
    window_.resize(std::min(std::max(wanted, kWindowBytes), remaining()));
    window_offset_ = position_;
    absl::Status read = file_.ReadExactlyAt(position_, window_);
    if (!read.ok()) {
      window_.clear();
      return read;
    }
  }
  return Bytes(window_).subspan(position_ - window_offset_, wanted);
}

absl::Status HeaderReader::Skip(uint64_t bytes) {
  if (bytes > remaining()) {
    return absl::OutOfRangeError(absl::StrCat(EscapeForTerminal(file_.path()), " has ", remaining(),
                                              " bytes after offset ", position_, ", expected ",
                                              bytes));
  }
  position_ += bytes;
  return absl::OkStatus();
}

}  // namespace shardpack

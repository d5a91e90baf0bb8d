#include "formats/io/sequential_reader.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

// Fits the second-level cache, so that hashing and parsing find the bytes there.
constexpr size_t kBlockBytes = 256 << 10;

}  // namespace

SequentialReader::SequentialReader(const File& file, uint64_t size)
    : file_(file), size_(size), window_(std::min<uint64_t>(size, kBlockBytes)) {}

absl::Status SequentialReader::Fill(size_t wanted) {
  if (end_ - begin_ >= wanted) return absl::OkStatus();
  std::memmove(window_.data(), window_.data() + begin_, end_ - begin_);
  window_offset_ += begin_;
  end_ -= begin_;
  begin_ = 0;
  if (window_.size() < wanted) window_.resize(wanted);
  const uint64_t left_in_file = size_ - window_offset_ - end_;
  const size_t take = std::min<uint64_t>(window_.size() - end_, left_in_file);
  const std::span<std::byte> into(window_.data() + end_, take);
  RETURN_IF_ERROR(file_.ReadExactlyAt(window_offset_ + end_, into));
  digest_.Update(into);
  end_ += take;
  return on_block_ ? on_block_(take) : absl::OkStatus();
}

absl::StatusOr<Bytes> SequentialReader::Peek(uint64_t bytes) {
  const size_t wanted = std::min(bytes, remaining());
  RETURN_IF_ERROR(Fill(wanted));
  return Bytes(window_.data() + begin_, wanted);
}

absl::Status SequentialReader::Skip(uint64_t bytes) {
  if (bytes > remaining()) {
    return absl::OutOfRangeError(absl::StrCat(EscapeForTerminal(file_.path()), " has ", remaining(),
                                              " bytes after offset ", position(), ", expected ",
                                              bytes));
  }
  while (bytes > 0) {
    RETURN_IF_ERROR(Fill(std::min<uint64_t>(bytes, 1)));
    const size_t step = std::min<uint64_t>(bytes, end_ - begin_);
    begin_ += step;
    bytes -= step;
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> SequentialReader::HashNext(uint64_t bytes) {
  if (bytes <= kBlockBytes || bytes <= end_ - begin_) {
    if (bytes > remaining()) return Skip(bytes);
    ASSIGN_OR_RETURN(Bytes whole, Peek(bytes));
    const uint64_t hash = Xxh3_64(whole);
    begin_ += bytes;
    return hash;
  }
  if (bytes > remaining()) return Skip(bytes);
  FieldHashStream stream;
  while (bytes > 0) {
    RETURN_IF_ERROR(Fill(1));
    const size_t step = std::min<uint64_t>(bytes, end_ - begin_);
    stream.Update(Bytes(window_.data() + begin_, step));
    begin_ += step;
    bytes -= step;
  }
  return stream.Finish();
}

absl::StatusOr<Digest> SequentialReader::Finish() {
  RETURN_IF_ERROR(Skip(remaining()));
  // A file that grows while being read is not the requested one.
  std::byte beyond;
  ASSIGN_OR_RETURN(size_t more, file_.ReadAt(size_, std::span(&beyond, 1)));
  if (more != 0) {
    return absl::OutOfRangeError(absl::StrCat(EscapeForTerminal(file_.path()),
                                              " has more than the ", size_,
                                              " bytes it was expected to have"));
  }
  return digest_.Finish();
}

}  // namespace shardpack

#include "converters/sources/gzip_stream.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "formats/io/shell_quoted.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr size_t kReadBytes = 1 << 18;
constexpr int kGzipAlone = 15 + 16;  // the largest window, and a gzip header and trailer
constexpr std::array<std::byte, 3> kMagic = {std::byte{0x1f}, std::byte{0x8b}, std::byte{8}};

}  // namespace

GzipStream::GzipStream(const File& file) : file_(file), block_(kReadBytes) {
  has_memory_ = ::inflateInit2(&zlib_, kGzipAlone) == Z_OK;
}

GzipStream::~GzipStream() {
  if (has_memory_) ::inflateEnd(&zlib_);
}

absl::StatusOr<bool> GzipStream::Is(const File& file) {
  std::array<std::byte, kMagic.size()> head;
  ASSIGN_OR_RETURN(const size_t got, file.ReadAt(0, head));
  return got == head.size() && head == kMagic;
}

absl::StatusOr<size_t> GzipStream::Read(std::span<std::byte> out) {
  if (!has_memory_) return IoStatus("unpack", file_.path(), ENOMEM);
  zlib_.next_out = reinterpret_cast<Bytef*>(out.data());
  const size_t wanted = std::min<size_t>(out.size(), std::numeric_limits<uInt>::max());
  zlib_.avail_out = static_cast<uInt>(wanted);
  while (zlib_.avail_out == wanted && !ended_) {
    RETURN_IF_ERROR(Fill());
    if (zlib_.avail_in == 0) return Damaged("it ends before its data does");
    const int result = ::inflate(&zlib_, Z_NO_FLUSH);
    if (result == Z_MEM_ERROR) return IoStatus("unpack", file_.path(), ENOMEM);
    if (result == Z_STREAM_END) {
      ASSIGN_OR_RETURN(const bool more, Another());
      ended_ = !more;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      return Damaged(zlib_.msg == nullptr ? "unknown error" : zlib_.msg);
    }
  }
  return wanted - zlib_.avail_out;
}

absl::Status GzipStream::Fill() {
  if (zlib_.avail_in > 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const size_t got, file_.ReadAt(read_, block_));
  read_ += got;
  zlib_.next_in = reinterpret_cast<Bytef*>(block_.data());
  zlib_.avail_in = static_cast<uInt>(got);
  return absl::OkStatus();
}

absl::StatusOr<bool> GzipStream::Another() {
  const uint64_t end = place();
  bool zeros = false;  // with which tapes and disks are filled up
  for (;;) {
    RETURN_IF_ERROR(Fill());
    if (zlib_.avail_in == 0) return false;
    if (*zlib_.next_in != 0) break;
    zeros = true;
    ++zlib_.next_in;
    --zlib_.avail_in;
  }
  // What a damaged header begins would be lost.
  if (zeros || *zlib_.next_in != static_cast<Bytef>(kMagic[0])) {
    return Damaged(absl::StrCat("after its ", end,
                                " bytes of gzip comes something that is not gzip; if that does not "
                                "belong to the archive, `head -c ",
                                end, " ", ShellQuoted(file_.path()),
                                " > NEW` keeps the archive without it"));
  }
  ::inflateReset(&zlib_);
  return true;
}

absl::Status GzipStream::Damaged(std::string_view why) const {
  return absl::DataLossError(absl::StrCat("the archive ", EscapeForTerminal(file_.path()),
                                          " is damaged near offset ", place(), ": ",
                                          std::string(why)));
}

}  // namespace shardpack

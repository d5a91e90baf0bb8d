#include "converters/archive_members.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"

namespace shardpack {
namespace {

constexpr size_t kReadBytes = 1 << 20;
constexpr uint64_t kBlockBytes = 512;
// What libarchive calls ARCHIVE_ERRNO_FILE_FORMAT in a header that it keeps to itself
// (archive_platform.h).
constexpr int kUnknownFormat = EILSEQ;
constexpr int kMaxExtensionHeaders = 16;  // before one member

// A file without a name, gone with its descriptor.
absl::StatusOr<File> OpenSpool() {
  std::error_code error;
  const std::string folder = std::filesystem::temp_directory_path(error).string();
  if (error) return IoStatus("find", "the folder for temporary files", error.value());
  int descriptor = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor < 0) {
    std::string path = folder + "/shardpack-spool-XXXXXX";
    descriptor = ::mkostemp(path.data(), O_CLOEXEC);
    if (descriptor < 0) return IoStatus("create", path, errno);
    ::unlink(path.c_str());
  }
  return File(descriptor, folder + "/(spool)");
}

// The number in a field of a tar header: octal, or base 256 (its first bit says so).
uint64_t HeaderNumber(std::string_view field) {
  uint64_t value = 0;
  if (!field.empty() && (static_cast<unsigned char>(field[0]) & 0x80) != 0) {
    for (const char c : field.substr(field.size() - 8))
      value = value << 8 | static_cast<unsigned char>(c);
    return value;
  }
  for (const char c : field) {
    if (c == ' ' && value == 0) continue;
    if (c < '0' || c > '7') break;
    value = value << 3 | static_cast<uint64_t>(c - '0');
  }
  return value;
}

// Where the data of the member begins whose first header, extension headers included, lies at `at`.
// libarchive has accepted them; it does not say where they end.
absl::StatusOr<uint64_t> FindTarData(const File& archive, uint64_t at) {
  for (int headers = 0; headers < kMaxExtensionHeaders; ++headers) {
    std::array<char, kBlockBytes> block;
    absl::Status read = archive.ReadExactlyAt(at, std::as_writable_bytes(std::span(block)));
    if (!read.ok()) return read;
    at += kBlockBytes;
    const char type = block[156];
    const bool extends = type == 'x' || type == 'X' || type == 'g' || type == 'L' || type == 'K';
    if (!extends) return at;
    const uint64_t bytes = HeaderNumber(std::string_view(block.data() + 124, 12));
    if (bytes > uint64_t{1} << 40) break;
    at += (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  }
  return absl::DataLossError(
      absl::StrCat(EscapeForTerminal(archive.path()), ": no tar header at offset ", at));
}

ArchiveMember::Kind KindOf(archive_entry* entry) {
  if (archive_entry_hardlink(entry) != nullptr) return ArchiveMember::Kind::kLink;
  switch (archive_entry_filetype(entry)) {
    case AE_IFREG:
      return ArchiveMember::Kind::kFile;
    case AE_IFDIR:
      return ArchiveMember::Kind::kFolder;
    case AE_IFLNK:
      return ArchiveMember::Kind::kLink;
    default:
      return ArchiveMember::Kind::kOther;
  }
}

}  // namespace

// An open archive of libarchive.
class ArchiveMembers::Handle {
 public:
  explicit Handle(const File& file) : archive_(archive_read_new()), file_(file) {}
  ~Handle() { archive_read_free(archive_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  absl::Status Open() {
    archive_read_support_filter_all(archive_);
    archive_read_support_format_tar(archive_);
    archive_read_support_format_zip(archive_);
    if (::lseek(file_.descriptor(), 0, SEEK_SET) != 0)
      return IoStatus("seek in", file_.path(), errno);
    if (archive_read_open_fd(archive_, file_.descriptor(), kReadBytes) != ARCHIVE_OK)
      return Failure();
    return absl::OkStatus();
  }
  // False at the end.
  absl::StatusOr<bool> Next() {
    const int result = archive_read_next_header(archive_, &entry_);
    if (result == ARCHIVE_EOF) return false;
    if (result == ARCHIVE_FATAL || result == ARCHIVE_FAILED) return Failure();
    return true;
  }
  archive* get() const { return archive_; }
  archive_entry* entry() const { return entry_; }
  bool is_plain_tar() const {
    return archive_filter_code(archive_, 0) == ARCHIVE_FILTER_NONE &&
           (archive_format(archive_) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_TAR;
  }
  std::string why() const {
    const char* text = archive_error_string(archive_);
    return text == nullptr ? "unknown error" : text;
  }
  absl::Status Failure() const {
    const int error = archive_errno(archive_);
    const std::string name = EscapeForTerminal(file_.path());
    if (error == ENOMEM || error == EIO) return IoStatus("read", file_.path(), error);
    if (entry_ == nullptr && error == kUnknownFormat) {
      return absl::InvalidArgumentError(
          absl::StrCat("source ", name, " is no tar or zip archive that can be read: ", why()));
    }
    return absl::DataLossError(absl::StrCat("the archive ", name, " is damaged near offset ",
                                            archive_filter_bytes(archive_, -1), ": ", why()));
  }

 private:
  archive* const archive_;
  const File& file_;
  archive_entry* entry_ = nullptr;
};

absl::Status ArchiveMembers::Walk(const std::function<bool(const ArchiveMember&)>& wanted,
                                  const std::function<void(const ArchiveMember&)>& take) {
  Handle archive(archive_);
  absl::Status opened = archive.Open();
  if (!opened.ok()) return opened;
  for (;;) {
    absl::StatusOr<bool> more = archive.Next();
    if (!more.ok()) return more.status();
    if (!*more) return absl::OkStatus();
    ArchiveMember member;
    // The bytes as they are, unless the archive gives them as UTF-8 that the locale cannot hold.
    const char* path = archive_entry_pathname(archive.entry());
    if (path == nullptr) path = archive_entry_pathname_utf8(archive.entry());
    member.path = path == nullptr ? std::string_view() : std::string_view(path);
    member.kind = KindOf(archive.entry());
    member.bytes = static_cast<uint64_t>(std::max<int64_t>(0, archive_entry_size(archive.entry())));
    if (!wanted(member)) continue;
    if (member.kind == ArchiveMember::Kind::kFile) {
      absl::Status placed =
          archive.is_plain_tar() ? Place(archive, member) : Spool(archive, member);
      if (!placed.ok()) return placed;
    }
    take(member);
  }
}

absl::Status ArchiveMembers::Place(Handle& archive, ArchiveMember& member) {
  if (archive_entry_sparse_count(archive.entry()) > 0) {
    member.unreadable = "a sparse member";
    return absl::OkStatus();
  }
  const int64_t header = archive_read_header_position(archive.get());
  absl::StatusOr<uint64_t> place =
      FindTarData(archive_, static_cast<uint64_t>(std::max<int64_t>(0, header)));
  if (!place.ok()) return place.status();
  member.place = *place;
  return absl::OkStatus();
}

absl::Status ArchiveMembers::Spool(Handle& archive, ArchiveMember& member) {
  if (!spool_.is_open()) {
    absl::StatusOr<File> spool = OpenSpool();
    if (!spool.ok()) return spool.status();
    spool_ = *std::move(spool);
  }
  member.place = spooled_bytes_;
  if (member.bytes > max_member_bytes_) {
    member.too_large = true;
    return absl::OkStatus();
  }
  uint64_t bytes = 0;
  std::vector<std::byte> block(std::min<uint64_t>(kReadBytes, max_member_bytes_ + 1));
  for (;;) {
    const la_ssize_t got = archive_read_data(archive.get(), block.data(), block.size());
    if (got == 0) break;
    if (got == ARCHIVE_RETRY) continue;
    if (got == ARCHIVE_FATAL) return archive.Failure();
    if (got < 0) {
      member.unreadable = archive.why();
      break;
    }
    bytes += static_cast<uint64_t>(got);
    if (bytes > max_member_bytes_) {  // whatever its header says
      member.too_large = true;
      break;
    }
    const Bytes part(block.data(), static_cast<size_t>(got));
    absl::Status written = spool_.Write(std::span(&part, 1));
    if (!written.ok()) return written;
    spooled_bytes_ += part.size();
  }
  member.bytes = bytes;
  return absl::OkStatus();
}

}  // namespace shardpack

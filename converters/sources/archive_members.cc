#include "converters/sources/archive_members.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <locale.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "converters/sources/gzip_stream.h"
#include "converters/sources/zip_directory.h"
#include "formats/io/status_macros.h"
#include "formats/tar/pax_records.h"
#include "formats/tar/tar_header.h"
#include "formats/tar/tar_walker.h"

namespace shardpack {
namespace {

constexpr size_t kReadBytes = 1 << 20;
// The value of ARCHIVE_ERRNO_FILE_FORMAT, which libarchive defines in a private header
// (archive_platform.h).
constexpr int kUnknownFormat = EILSEQ;
constexpr int kMaxExtensionHeaders = 16;  // before one member
constexpr uint64_t kMaxExtensionBytes = uint64_t{1} << 40;
// Header types that tar shards never have.
constexpr char kVolumeLabel = 'V', kSolarisPax = 'X', kSolarisAcl = 'A';

// An unnamed file, deleted when its descriptor is closed.
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

struct TarData {
  uint64_t place = 0;
  std::optional<uint64_t> bytes;  // as the headers say; nullopt = in a form not supported here
};

// Finds the data of the member whose first header (extension headers included) is the first at or
// after `at`, past zero blocks that end an archive before it. libarchive has accepted the headers,
// but does not say where they end.
absl::StatusOr<TarData> FindTarData(const File& archive, uint64_t at) {
  PaxOverrides pax;
  for (int headers = 0; headers < kMaxExtensionHeaders;) {
    std::array<std::byte, kTarBlockBytes> block;
    RETURN_IF_ERROR(archive.ReadExactlyAt(at, block));
    if (IsAllZero(block)) {
      at += kTarBlockBytes;
      continue;
    }
    TarHeader header;
    const TarHeaderFault fault = DecodeTarHeader(block.data(), header);
    if (fault == TarHeaderFault::kChecksum) break;
    at += kTarBlockBytes;
    ++headers;
    // Of these types, libarchive (header_volume) reads only the label.
    if (header.type == kVolumeLabel) continue;
    const bool is_pax =
        header.type == kTarPaxNext || header.type == kSolarisPax || header.type == kTarPaxGlobal;
    if (!is_pax && header.type != kTarGnuLongName && header.type != kTarGnuLongLink &&
        header.type != kSolarisAcl) {
      if (header.type == kTarGnuSparse) return TarData{at, std::nullopt};
      if (pax.has_size) return TarData{at, pax.size_bytes};
      if (fault == TarHeaderFault::kSize) return TarData{at, std::nullopt};
      return TarData{at, header.size_bytes};
    }
    if (fault == TarHeaderFault::kSize || header.size_bytes > kMaxExtensionBytes) break;
    if (is_pax) {
      if (header.size_bytes > kMaxTarExtensionBytes) break;
      std::vector<std::byte> records(header.size_bytes);
      RETURN_IF_ERROR(archive.ReadExactlyAt(at, records));
      (void)ParsePaxRecords(records, pax);  // libarchive has ignored malformed ones
    }
    at += PaddedToTarBlock(header.size_bytes);
  }
  return absl::DataLossError(
      absl::StrCat(EscapeForTerminal(archive.path()), ": no tar header at offset ", at));
}

// During its lifetime this thread treats text as UTF-8, which names in zip and pax archives are:
// libarchive drops a name that the locale cannot represent.
class Utf8Locale {
 public:
  Utf8Locale() : locale_(::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {
    if (locale_ != nullptr) before_ = ::uselocale(locale_);
  }
  ~Utf8Locale() {
    if (locale_ == nullptr) return;
    ::uselocale(before_);
    ::freelocale(locale_);
  }
  Utf8Locale(const Utf8Locale&) = delete;
  Utf8Locale& operator=(const Utf8Locale&) = delete;

 private:
  const locale_t locale_;
  locale_t before_ = nullptr;
};

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

// An archive opened with libarchive.
class ArchiveMembers::Handle {
 public:
  explicit Handle(const File& file) : archive_(archive_read_new()), file_(file) {}
  ~Handle() { archive_read_free(archive_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  absl::Status Open() {
    // Not all filters: some run a program of the user's PATH because of what the input begins with.
    archive_read_support_filter_bzip2(archive_);
    archive_read_support_filter_xz(archive_);
    archive_read_support_filter_lzma(archive_);
    archive_read_support_filter_zstd(archive_);
    archive_read_support_format_tar(archive_);
    archive_read_support_format_zip(archive_);
    // Data after zero blocks counts: another archive, or the rest after a zeroed header.
    if (archive_read_set_option(archive_, "tar", "read_concatenated_archives", "1") != ARCHIVE_OK)
      return Failure();
    ASSIGN_OR_RETURN(const uint64_t bytes, file_.Size());
    bytes_ = bytes;
    archive_read_set_callback_data(archive_, this);
    archive_read_set_read_callback(archive_, &Read);
    ASSIGN_OR_RETURN(const bool is_gzip, GzipStream::Is(file_));
    if (is_gzip) {
      gzip_.emplace(file_);
    } else {
      archive_read_set_skip_callback(archive_, &Skip);
      archive_read_set_seek_callback(archive_, &Seek);
    }
    if (archive_read_open1(archive_) != ARCHIVE_OK) return Failure();
    return absl::OkStatus();
  }
  // False at the end.
  absl::StatusOr<bool> Next() {
    const int result = archive_read_next_header(archive_, &entry_);
    if (!read_.ok()) return read_;  // whatever libarchive makes of it
    if (result == ARCHIVE_EOF) return false;
    // ARCHIVE_RETRY: a damaged header was skipped, and its member with it.
    if (result != ARCHIVE_OK && result != ARCHIVE_WARN) return Failure();
    return true;
  }
  archive* get() const { return archive_; }
  archive_entry* entry() const { return entry_; }
  // Offset of the member's first header, or of zero blocks before it.
  uint64_t header_place() const {
    return static_cast<uint64_t>(std::max<int64_t>(0, archive_read_header_position(archive_)));
  }
  bool is_compressed() const {
    return gzip_ || archive_filter_code(archive_, 0) != ARCHIVE_FILTER_NONE;
  }
  bool is_tar() const { return IsFormat(ARCHIVE_FORMAT_TAR); }
  bool is_plain_tar() const { return is_tar() && !is_compressed(); }
  bool is_plain_zip() const { return IsFormat(ARCHIVE_FORMAT_ZIP) && !is_compressed(); }
  // Of the archive, unpacked: how far it has been taken. After Next, where the member's bytes
  // begin.
  int64_t unpacked_place() const { return archive_filter_bytes(archive_, 0); }
  std::string why() const {
    const char* text = archive_error_string(archive_);
    return text == nullptr ? "it ends early, as one that was cut" : text;
  }
  absl::Status Failure() const {
    if (!read_.ok()) return read_;
    const int error = archive_errno(archive_);
    const std::string name = EscapeForTerminal(file_.path());
    if (error == ENOMEM) return IoStatus("read", file_.path(), error);
    if (entry_ == nullptr && error == kUnknownFormat) {
      if (archive_filter_code(archive_, 0) != ARCHIVE_FILTER_NONE) {
        return absl::DataLossError(absl::StrCat(
            "the archive ", name, " is damaged, or compressed and no tar inside: ", why()));
      }
      return absl::InvalidArgumentError(
          absl::StrCat("source ", name, " is not a tar or zip archive that can be read: ", why()));
    }
    const int64_t offset = is_plain_tar() ? archive_read_header_position(archive_)
                           : gzip_        ? static_cast<int64_t>(gzip_->place())
                                          : archive_filter_bytes(archive_, -1);
    return absl::DataLossError(absl::StrCat("the archive ", name, " is damaged",
                                            offset < 0 ? "" : absl::StrCat(" near offset ", offset),
                                            ": ", why()));
  }

  // The status of reading the file: libarchive takes some errors for the end of the archive.
  const absl::Status& read() const { return read_; }

 private:
  static la_ssize_t Read(archive*, void* self, const void** block) {
    auto* const handle = static_cast<Handle*>(self);
    const absl::StatusOr<size_t> got =
        handle->gzip_ ? handle->gzip_->Read(handle->block_)
                      : handle->file_.ReadAt(handle->place_, std::span(handle->block_));
    if (!got.ok()) {
      handle->read_.Update(got.status());
      return -1;
    }
    *block = handle->block_.data();
    handle->place_ += *got;
    return static_cast<la_ssize_t>(*got);
  }
  static la_int64_t Skip(archive*, void* self, la_int64_t bytes) {
    auto* const handle = static_cast<Handle*>(self);
    const uint64_t rest = handle->bytes_ - std::min(handle->bytes_, handle->place_);
    const uint64_t skipped = std::min(rest, static_cast<uint64_t>(std::max<la_int64_t>(bytes, 0)));
    handle->place_ += skipped;
    return static_cast<la_int64_t>(skipped);
  }
  static la_int64_t Seek(archive*, void* self, la_int64_t offset, int whence) {
    auto* const handle = static_cast<Handle*>(self);
    const uint64_t from = whence == SEEK_SET   ? 0
                          : whence == SEEK_CUR ? handle->place_
                                               : handle->bytes_;
    la_int64_t place = 0;  // archives may contain any offset
    if (__builtin_add_overflow(static_cast<la_int64_t>(from), offset, &place) || place < 0)
      return ARCHIVE_FATAL;
    handle->place_ = static_cast<uint64_t>(place);
    return place;
  }

  bool IsFormat(int format) const {
    return (archive_format(archive_) & ARCHIVE_FORMAT_BASE_MASK) == format;
  }

  archive* const archive_;
  const File& file_;
  std::optional<GzipStream> gzip_;  // if the file is one
  uint64_t bytes_ = 0, place_ = 0;  // of the file; offset of the next block
  std::vector<std::byte> block_ = std::vector<std::byte>(kReadBytes);
  absl::Status read_;
  archive_entry* entry_ = nullptr;
};

absl::Status ArchiveMembers::Walk(const std::function<bool(const ArchiveMember&)>& wanted,
                                  const std::function<void(const ArchiveMember&)>& take) {
  const Utf8Locale utf8;
  Handle archive(archive_);
  RETURN_IF_ERROR(archive.Open());
  uint64_t members = 0;
  int64_t end = 0;  // of the last member of a tar
  for (;; ++members) {
    ASSIGN_OR_RETURN(bool more, archive.Next());
    if (!more) {
      ends_early_ = end > 0 && archive.unpacked_place() <= end;
      return archive.is_plain_zip() ? CheckZipDirectory(archive_, members) : absl::OkStatus();
    }
    end = archive.is_tar() ? EndOf(archive) : 0;
    ArchiveMember member;
    // The bytes as they are, unless the archive stores them as UTF-8 that the locale cannot
    // represent.
    const char* path = archive_entry_pathname(archive.entry());
    if (path == nullptr) path = archive_entry_pathname_utf8(archive.entry());
    member.path = path == nullptr ? std::string_view() : std::string_view(path);
    member.kind = KindOf(archive.entry());
    member.bytes = static_cast<uint64_t>(std::max<int64_t>(0, archive_entry_size(archive.entry())));
    if (!wanted(member)) continue;
    if (member.kind == ArchiveMember::Kind::kFile) {
      RETURN_IF_ERROR(archive.is_plain_tar() ? Place(archive, member) : Spool(archive, member));
    }
    take(member);
  }
}

absl::Status ArchiveMembers::Place(Handle& archive, ArchiveMember& member) {
  if (archive_entry_sparse_count(archive.entry()) > 0) {
    member.unreadable = "a sparse member";
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const TarData data, FindTarData(archive_, archive.header_place()));
  member.place = data.place;
  if (data.bytes != member.bytes) {
    member.unreadable = absl::StrCat("its header gives ", data.bytes.value_or(0), " bytes, not ",
                                     member.bytes, ", as sparse members do");
  }
  return absl::OkStatus();
}

int64_t ArchiveMembers::EndOf(const Handle& archive) {
  if (archive_entry_sparse_count(archive.entry()) > 0 ||
      archive_entry_hardlink(archive.entry()) != nullptr)
    return 0;
  const auto bytes =
      static_cast<uint64_t>(std::max<int64_t>(0, archive_entry_size(archive.entry())));
  return archive.unpacked_place() + static_cast<int64_t>(PaddedToTarBlock(bytes));
}

absl::Status ArchiveMembers::Spool(Handle& archive, ArchiveMember& member) {
  if (!spool_.is_open()) {
    ASSIGN_OR_RETURN(spool_, OpenSpool());
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
    if (got == ARCHIVE_FATAL || !archive.read().ok()) return archive.Failure();
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
    RETURN_IF_ERROR(spool_.Write(std::span(&part, 1)));
    spooled_bytes_ += part.size();
  }
  member.bytes = bytes;
  return absl::OkStatus();
}

}  // namespace shardpack

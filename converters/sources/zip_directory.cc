#include "converters/sources/zip_directory.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "formats/io/bytes.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

// Records of APPNOTE.TXT: their signatures, and their bytes before names and comments.
constexpr uint32_t kLocal = 0x04034b50, kEntry = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                   kLocator64 = 0x07064b50;
constexpr uint64_t kLocalBytes = 30, kEntryBytes = 46, kEndBytes = 22, kEnd64Bytes = 56,
                   kLocator64Bytes = 20, kMaxCommentBytes = 0xffff;
constexpr uint16_t kHiddenNames = 0x2000;  // flag: the header's name is masked
constexpr uint16_t kExtra64 = 1;           // id of the extra field with what exceeds 32 bits
constexpr uint32_t kIn64 = 0xffffffff;

// Bytes of a file in any order, of which most follow each other.
class Window {
 public:
  explicit Window(const File& file, size_t block_bytes) : file_(file), block_(block_bytes) {}

  // Fewer than `bytes` at the end of the file. Valid until the next call.
  absl::StatusOr<std::string_view> At(uint64_t offset, size_t bytes) {
    if (offset < begin_ || offset - begin_ > filled_ || filled_ - (offset - begin_) < bytes) {
      if (block_.size() < bytes) block_.resize(bytes);
      filled_ = 0;
      ASSIGN_OR_RETURN(const size_t got, file_.ReadAt(offset, block_));
      begin_ = offset;
      filled_ = got;
    }
    const auto* const text = reinterpret_cast<const char*>(block_.data());
    return std::string_view(text, filled_).substr(offset - begin_, bytes);
  }

 private:
  const File& file_;
  std::vector<std::byte> block_;
  uint64_t begin_ = 0;
  size_t filled_ = 0;
};

template <typename T>
T Number(std::string_view record, size_t at) {
  return LoadLittle<T>(record.data() + at);
}

absl::Status Damaged(const File& zip, uint64_t offset, std::string_view why) {
  return absl::DataLossError(absl::StrCat("the archive ", EscapeForTerminal(zip.path()),
                                          " is damaged near offset ", offset, ": ",
                                          std::string(why),
                                          "; compare it with its origin, or pack what "
                                          "`zip -FF` saves of it"));
}

struct Directory {
  uint64_t at = 0, bytes = 0;  // of its entries
  uint64_t base = 0;           // what offsets count from: what precedes the zip in its file
  uint64_t members = 0;
};

// The directory that an end record at `end` describes; nullopt if there is none.
absl::StatusOr<std::optional<Directory>> DirectoryBefore(Window& window, uint64_t end) {
  ASSIGN_OR_RETURN(std::string_view record, window.At(end, kEndBytes));
  if (record.size() < kEndBytes || Number<uint32_t>(record, 0) != kEnd) return std::nullopt;
  Directory found{.bytes = Number<uint32_t>(record, 12), .members = Number<uint16_t>(record, 10)};
  uint64_t offset = Number<uint32_t>(record, 16), behind = end;
  if (end >= kLocator64Bytes + kEnd64Bytes) {
    ASSIGN_OR_RETURN(const std::string_view locator,
                     window.At(end - kLocator64Bytes, kLocator64Bytes));
    if (Number<uint32_t>(locator, 0) == kLocator64) {
      const uint64_t said = Number<uint64_t>(locator, 8);
      const uint64_t last = end - kLocator64Bytes - kEnd64Bytes;
      // Where the zip says it is, or, after something else, where it is if nothing is added to it.
      for (const uint64_t at : {said, last}) {
        if (at > last) continue;
        ASSIGN_OR_RETURN(record, window.At(at, kEnd64Bytes));
        if (record.size() < kEnd64Bytes || Number<uint32_t>(record, 0) != kEnd64) continue;
        behind = at;
        break;
      }
      if (behind == end) return std::nullopt;
      found.members = Number<uint64_t>(record, 32);
      found.bytes = Number<uint64_t>(record, 40);
      offset = Number<uint64_t>(record, 48);
    }
  }
  if (found.bytes > behind || offset > behind - found.bytes) return std::nullopt;
  found.at = behind - found.bytes;
  found.base = found.at - offset;
  return found;
}

absl::StatusOr<Directory> FindDirectory(const File& zip, Window& window) {
  ASSIGN_OR_RETURN(const uint64_t size, zip.Size());
  // At once, for all places where it may be.
  RETURN_IF_ERROR(window.At(size - std::min(size, kEndBytes + kMaxCommentBytes), 1).status());
  for (uint64_t end = size < kEndBytes ? 0 : size - kEndBytes + 1;
       end > 0 && size - end < kEndBytes + kMaxCommentBytes; --end) {
    ASSIGN_OR_RETURN(const std::optional<Directory> found, DirectoryBefore(window, end - 1));
    if (found) return *found;
  }
  return Damaged(zip, size, "it ends without its table of contents, as one that was cut");
}

// The entry's offset, which is in an extra field if 32 bits do not hold it.
std::optional<uint64_t> PlaceOf(std::string_view entry, std::string_view extra) {
  const uint32_t place = Number<uint32_t>(entry, 42);
  if (place != kIn64) return place;
  while (extra.size() >= 4) {
    const uint16_t id = Number<uint16_t>(extra, 0), bytes = Number<uint16_t>(extra, 2);
    extra.remove_prefix(4);
    if (extra.size() < bytes) break;
    if (id == kExtra64) {
      const size_t at = (Number<uint32_t>(entry, 24) == kIn64 ? 8 : 0) +
                        (Number<uint32_t>(entry, 20) == kIn64 ? 8 : 0);
      if (bytes < at + 8) break;
      return Number<uint64_t>(extra, at);
    }
    extra.remove_prefix(bytes);
  }
  return std::nullopt;
}

// Compares an entry with the header beside its member's bytes.
absl::Status CheckHeader(const File& zip, Window& window, uint64_t at, std::string_view name) {
  ASSIGN_OR_RETURN(const std::string_view header, window.At(at, kLocalBytes + name.size()));
  const auto called = [&] {
    return absl::StrCat("its table of contents names ", EscapeForTerminal(name));
  };
  if (header.size() < kLocalBytes || Number<uint32_t>(header, 0) != kLocal)
    return Damaged(zip, at, absl::StrCat(called(), ", and no member begins there"));
  if (Number<uint16_t>(header, 26) != name.size() || header.substr(kLocalBytes) != name) {
    return Damaged(zip, at, absl::StrCat(called(), ", and the member itself has another name"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckZipDirectory(const File& zip, uint64_t members) {
  constexpr size_t kBlockBytes = 1 << 17, kHeaderBytes = 1 << 9;
  Window entries(zip, kBlockBytes), headers(zip, kHeaderBytes);
  ASSIGN_OR_RETURN(const Directory directory, FindDirectory(zip, entries));
  std::vector<uint64_t> places;
  const uint64_t end = directory.at + directory.bytes;
  for (uint64_t at = directory.at; at < end;) {
    ASSIGN_OR_RETURN(std::string_view entry, entries.At(at, kEntryBytes));
    if (entry.size() < kEntryBytes || Number<uint32_t>(entry, 0) != kEntry)
      return Damaged(zip, at, "no entry of its table of contents is there");
    const size_t name_bytes = Number<uint16_t>(entry, 28),
                 extra_bytes = Number<uint16_t>(entry, 30);
    ASSIGN_OR_RETURN(entry, entries.At(at, kEntryBytes + name_bytes + extra_bytes));
    if (entry.size() < kEntryBytes + name_bytes + extra_bytes)
      return Damaged(zip, at, "its table of contents ends inside an entry");
    const std::optional<uint64_t> place = PlaceOf(entry, entry.substr(kEntryBytes + name_bytes));
    if (!place || *place > directory.at)
      return Damaged(zip, at, "an entry of its table of contents leads out of it");
    places.push_back(*place);
    if ((Number<uint16_t>(entry, 8) & kHiddenNames) == 0) {
      RETURN_IF_ERROR(CheckHeader(zip, headers, directory.base + *place,
                                  entry.substr(kEntryBytes, name_bytes)));
    }
    at += kEntryBytes + name_bytes + extra_bytes + Number<uint16_t>(entry, 32);
  }
  std::sort(places.begin(), places.end());
  const auto twice = std::adjacent_find(places.begin(), places.end());
  if (twice != places.end()) {
    return Damaged(zip, directory.base + *twice, "its table of contents names two members there");
  }
  // Writers without the records for more than 65,535 members leave out what does not fit.
  if (directory.members != places.size() &&
      directory.members != (places.size() & uint64_t{0xffff})) {
    return Damaged(zip, end,
                   absl::StrCat("its table of contents says that it names ", directory.members,
                                " members, and names ", places.size()));
  }
  if (members != places.size()) {
    return Damaged(zip, directory.at,
                   absl::StrCat("its table of contents names ", places.size(), " members, ",
                                members, " are found"));
  }
  return absl::OkStatus();
}

}  // namespace shardpack

// ArchiveMembers: reads the members of an archive with libarchive, and gives the position of each
// member's bytes.
//
//   ArchiveMembers members(file);
//   absl::Status walked = members.Walk(wanted, take);  // wanted(member) selects, take(member) gets
//
// Lifetime: borrows the file; a member is valid during the call.
// Thread-safety: one caller at a time.
// Errors: InvalidArgument for what is not an archive; DataLoss, with the offset, for a damaged one;
// I/O Status.
// Memory: libarchive's, and one block.
// Units: bytes. Internal to the archive source.
#ifndef SHARDPACK_CONVERTERS_SOURCES_ARCHIVE_MEMBERS_H_
#define SHARDPACK_CONVERTERS_SOURCES_ARCHIVE_MEMBERS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/io/file.h"

namespace shardpack {

struct ArchiveMember {
  enum class Kind : uint8_t { kFile, kFolder, kLink, kOther };

  std::string_view path;  // as spelled in the archive
  Kind kind = Kind::kFile;
  uint64_t bytes = 0;
  uint64_t place = 0;           // offset of its bytes, in the archive or in the spool
  std::string unreadable = {};  // why its bytes are unavailable; "" = they are there
  bool too_large = false;       // over the limit: not spooled
};

class ArchiveMembers {
 public:
  ArchiveMembers(const File& archive, uint64_t max_member_bytes)
      : archive_(archive), max_member_bytes_(max_member_bytes) {}

  // Calls `wanted` for each member, and `take` for each wanted one once its bytes are available.
  absl::Status Walk(const std::function<bool(const ArchiveMember&)>& wanted,
                    const std::function<void(const ArchiveMember&)>& take);
  // Whether it is a tar without the zero blocks that end one: it may be truncated. Valid
  // after Walk.
  bool ends_early() const { return ends_early_; }
  // Open if members cannot be read in place; valid after Walk.
  File TakeSpool() { return std::move(spool_); }

 private:
  class Handle;

  absl::Status Place(Handle& archive, ArchiveMember& member);
  // Of a tar's member, unpacked; 0 = not known, as of links.
  static int64_t EndOf(const Handle& archive);
  absl::Status Spool(Handle& archive, ArchiveMember& member);

  const File& archive_;
  const uint64_t max_member_bytes_;
  File spool_;
  uint64_t spooled_bytes_ = 0;
  bool ends_early_ = false;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_ARCHIVE_MEMBERS_H_

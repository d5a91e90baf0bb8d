// ArchiveMembers: walks the members of an archive through libarchive, and says where the bytes of
// each lie.
//
//   ArchiveMembers members(file);
//   absl::Status walked = members.Walk(wanted, take);   // wanted(member) chooses, take(member) gets
//
// Lifetime: borrows the file; a member is valid during the call.
// Thread-safety: one caller.
// Errors: InvalidArgument for what is no archive; DataLoss with the offset for one that is damaged;
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

  std::string_view path;  // as it stands in the archive
  Kind kind = Kind::kFile;
  uint64_t bytes = 0;
  uint64_t place = 0;           // of its bytes: in the archive, or in the spool
  std::string unreadable = {};  // why its bytes could not be had; "" = they are there
  bool too_large = false;       // more than the limit: not spooled
};

class ArchiveMembers {
 public:
  ArchiveMembers(const File& archive, uint64_t max_member_bytes)
      : archive_(archive), max_member_bytes_(max_member_bytes) {}

  // Calls `wanted` for each member, and `take` for each that is, once its bytes are there.
  absl::Status Walk(const std::function<bool(const ArchiveMember&)>& wanted,
                    const std::function<void(const ArchiveMember&)>& take);
  // Whether it is a plain tar without the zero blocks that end one: it may have been cut. Valid
  // after Walk.
  bool ends_early() const { return ends_early_; }
  // Open when members are not read where they lie; valid after Walk.
  File TakeSpool() { return std::move(spool_); }

 private:
  class Handle;

  absl::Status Place(Handle& archive, ArchiveMember& member);
  absl::StatusOr<bool> EndsWith(uint64_t header) const;  // the member whose first header lies there
  absl::Status Spool(Handle& archive, ArchiveMember& member);

  const File& archive_;
  const uint64_t max_member_bytes_;
  File spool_;
  uint64_t spooled_bytes_ = 0;
  bool ends_early_ = false;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_ARCHIVE_MEMBERS_H_

// SourceCheck: compares a record's image and its sidecars with the files they were packed from,
// byte by byte. If the pixels were changed on purpose, it only checks that the image's file exists.
// SourceOpener: opens a file of the source, in a folder or in an archive.
//
//   const SourceOpener open = FilesBelow("/data/train");
//   SourceCheck check(open, {{"mask", "png"}}, shard_name, /*changed=*/false, outcome.findings);
//   check.Compare(shard_file, index, 7);
//
// Lifetime: borrows all arguments.
// Thread-safety: one caller at a time.
// Errors: findings.
// Units: bytes.
#ifndef SHARDPACK_VALIDATORS_CHECKS_SOURCE_CHECK_H_
#define SHARDPACK_VALIDATORS_CHECKS_SOURCE_CHECK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/core/finding.h"
#include "formats/core/shard_index.h"
#include "formats/io/file.h"

namespace shardpack {

// Fields that come from files next to the image: field name -> the suffix that replaces the image's
// extension.
using SourceParts = std::map<std::string, std::string>;

// Where the bytes of one source file are.
struct SourceFile {
  std::shared_ptr<const File> file;
  uint64_t begin = 0, bytes = 0;

  // Like File::ReadAt, with the offset relative to the start of the source file.
  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<std::byte> into) const;
};

// Opens the file at this path in the source; callable from any thread. NotFound if there is none,
// InvalidArgument if it is not a file.
using SourceOpener = std::function<absl::StatusOr<SourceFile>(const std::string& path)>;

SourceOpener FilesBelow(std::string folder);

class SourceCheck {
 public:
  SourceCheck(const SourceOpener& open, const SourceParts& parts, std::string_view shard,
              bool changed, FindingSink& findings)
      : open_(open), parts_(parts), shard_(shard), changed_(changed), findings_(findings) {}

  // Compares field 0 of the record with the file at the recorded source path, and the parts with
  // the files next to it.
  void Compare(const File& shard_file, const ShardIndex& index, uint64_t record);
  uint64_t compared() const { return compared_; }

 private:
  struct Place {
    uint64_t record;
    size_t field;
    std::string path;  // relative to the root
  };
  void Report(FindingId id, const ShardIndex& index, const Place& place,
              std::optional<uint64_t> offset, const std::string& detail);
  void ReportUnread(const ShardIndex& index, const Place& place, const absl::Status& why);
  void CompareBytes(const File& shard_file, const ShardIndex& index, const Place& place,
                    const SourceFile& source);
  void ComparePart(const File& shard_file, const ShardIndex& index, uint64_t record, size_t field);

  const SourceOpener& open_;
  const SourceParts& parts_;
  const std::string shard_;
  const bool changed_;
  FindingSink& findings_;
  std::vector<std::byte> ours_, theirs_;
  uint64_t compared_ = 0;
};

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_CHECKS_SOURCE_CHECK_H_

// SourceCheck: compares a record's image and its sidecars with the files they were packed from,
// byte by byte; where the pixels were changed on purpose, of the image only whether that file is
// there.
//
//   SourceCheck check("/data/train", {{"mask", "png"}}, shard_name, /*changed=*/false, outcome.findings);
//   check.Compare(shard_file, index, 7);
//
// Lifetime: borrows all arguments.
// Thread-safety: one caller at a time.
// Errors: findings.
// Units: bytes.
#ifndef SHARDPACK_VALIDATORS_CHECKS_SOURCE_CHECK_H_
#define SHARDPACK_VALIDATORS_CHECKS_SOURCE_CHECK_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "formats/core/finding.h"
#include "formats/core/shard_index.h"
#include "formats/io/file.h"

namespace shardpack {

// Fields that are files beside the image: what stands in place of its extension, by the field's
// name.
using SourceParts = std::map<std::string, std::string>;

class SourceCheck {
 public:
  SourceCheck(std::string root, const SourceParts& parts, std::string_view shard, bool changed,
              FindingSink& findings)
      : root_(std::move(root)),
        parts_(parts),
        shard_(shard),
        changed_(changed),
        findings_(findings) {}

  // Field 0 of the record with the file at the recorded source path, and the parts with those
  // beside it.
  void Compare(const File& shard_file, const ShardIndex& index, uint64_t record);
  uint64_t compared() const { return compared_; }

 private:
  struct Place {
    uint64_t record;
    size_t field;
    std::string path;  // below the root
  };
  void Report(FindingId id, const ShardIndex& index, const Place& place,
              std::optional<uint64_t> offset, const std::string& detail);
  void ReportUnread(const ShardIndex& index, const Place& place, const absl::Status& why);
  void CompareBytes(const File& shard_file, const ShardIndex& index, const Place& place,
                    const File& source);
  void ComparePart(const File& shard_file, const ShardIndex& index, uint64_t record, size_t field);

  const std::string root_;
  const SourceParts& parts_;
  const std::string shard_;
  const bool changed_;
  FindingSink& findings_;
  std::vector<std::byte> ours_, theirs_;
  uint64_t compared_ = 0;
};

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_CHECKS_SOURCE_CHECK_H_

// CheckSource: compares a record's image with the file it was packed from, byte by byte; where the
// pixels were changed on purpose, only whether that file is there.
//
//   SourceCheck check("/data/train", shard_name, /*changed=*/false, outcome.findings);
//   check.Compare(shard_file, index, 7);
//
// Lifetime: borrows all arguments. Thread-safety: one caller at a time. Errors: findings. Units:
// bytes.
#ifndef SHARDPACK_VALIDATORS_CHECKS_SOURCE_CHECK_H_
#define SHARDPACK_VALIDATORS_CHECKS_SOURCE_CHECK_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/core/finding.h"
#include "formats/core/shard_index.h"
#include "formats/io/file.h"

namespace shardpack {

class SourceCheck {
 public:
  SourceCheck(std::string root, std::string_view shard, bool changed, FindingSink& findings)
      : root_(std::move(root)), shard_(shard), changed_(changed), findings_(findings) {}

  // Field 0 of the record with the file at the recorded source path.
  void Compare(const File& shard_file, const ShardIndex& index, uint64_t record);
  uint64_t compared() const { return compared_; }

 private:
  const std::string root_, shard_;
  const bool changed_;
  FindingSink& findings_;
  std::vector<std::byte> ours_, theirs_;
  uint64_t compared_ = 0;
};

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_CHECKS_SOURCE_CHECK_H_

// VisitMembers: visits the members of a finished shard that belong to samples, for index writers.
//
//   const auto visit = [&](const ShardMember& member) {
//     samples += member.begins_sample;
//     return absl::OkStatus();
//   };
//   absl::StatusOr<uint64_t> end = VisitMembers(file, size, "train-000000.tar", visit);
//
// Lifetime: a member's texts are valid during its visit.
// Errors: DataLoss with the first finding for a damaged shard; an error from `visit` stops the walk
// and is returned; else read errors. Only headers are read.
// Units: bytes from the start of the shard.
#ifndef SHARDPACK_FORMATS_WEBDATASET_TOOL_INDEXES_SHARD_MEMBERS_H_
#define SHARDPACK_FORMATS_WEBDATASET_TOOL_INDEXES_SHARD_MEMBERS_H_

#include <cstdint>
#include <functional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/core/format.h"
#include "formats/io/file.h"

namespace shardpack {

struct ShardMember {
  std::string_view key, extension, name;  // as spelled in the shard
  uint64_t offset = 0;                    // of its first block, extension records included
  uint64_t data_offset = 0, size_bytes = 0;
  bool has_extension_record = false;
  bool begins_sample = false;  // its key differs from that of the previous member
};

using MemberVisitor = std::function<absl::Status(const ShardMember& member)>;

// Visits the members that readers assign to samples, in file order. Returns the end of the last
// member of any kind, including its padding, or 0 if there is none.
absl::StatusOr<uint64_t> VisitMembers(const File& file, uint64_t size_bytes,
                                      std::string_view shard_name, const MemberVisitor& visit);

// The same for a shard of the dataset that `input` describes.
absl::StatusOr<uint64_t> VisitMembers(const SidecarInput& input, const ManifestShard& shard,
                                      const MemberVisitor& visit);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_WEBDATASET_TOOL_INDEXES_SHARD_MEMBERS_H_

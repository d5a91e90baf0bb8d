// HashField, HashFile: hash bytes on disk with positioned reads in blocks, so memory use does not
// depend on the length.
//
//   std::vector<std::byte> block;
//   absl::StatusOr<uint64_t> hash = HashField(file, index.field(0, 0), block);
//   absl::StatusOr<Digest> digest = HashFile(file, size, run);
//
// Lifetime: borrows all arguments during the call.
// Thread-safety: one caller per block buffer.
// Errors: OutOfRange if the file ends too early; Cancelled; I/O.
// Units: bytes.
#ifndef SHARDPACK_VALIDATORS_CHECKS_FIELD_READ_H_
#define SHARDPACK_VALIDATORS_CHECKS_FIELD_READ_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/core/finding.h"
#include "formats/core/shard_index.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "validators/checks/check_run.h"

namespace shardpack {

// XXH3-64. `block` is a buffer that the caller keeps from one field to the next.
absl::StatusOr<uint64_t> HashField(const File& file, const Extent& extent,
                                   std::vector<std::byte>& block);

// XXH3-128 of `size` bytes; reports its progress to `run`.
absl::StatusOr<Digest> HashFile(const File& file, uint64_t size, const CheckRun& run);

// Hashes every field of a record, reports those that differ from the index, and adds the bytes read
// to `bytes`. Errors: I/O, except an early end, which is a finding.
absl::Status CheckRecordFields(const File& file, const ShardIndex& index, uint64_t record,
                               std::string_view shard, std::vector<std::byte>& block,
                               uint64_t& bytes, FindingSink& findings);

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_CHECKS_FIELD_READ_H_

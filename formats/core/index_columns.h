// ColumnOf: a column of a shard's index as the bytes that it has in the file, for programs that
// look at all records.
//
//   const Bytes labels = ColumnOf(index, IndexColumn::kLabels);    // int64, little-endian
//   const Bytes hashes = ColumnOf(index, IndexColumn::kHashes, 1);   // of the second field
//
// Lifetime: views are valid as long as one copy of the index exists; they are 8-byte aligned.
// Thread-safety: any thread.
// Errors: none; `field` must be below index.fields().
// Units: bytes.
#ifndef SHARDPACK_FORMATS_CORE_INDEX_COLUMNS_H_
#define SHARDPACK_FORMATS_CORE_INDEX_COLUMNS_H_

#include <cstddef>
#include <cstdint>

#include "formats/core/shard_index.h"
#include "formats/io/bytes.h"

namespace shardpack {

enum class IndexColumn : uint8_t {
  kLabels,   // int64
  kImages,   // ImageInfo
  kKeyEnds,  // uint64, in kKeyText; each key begins where the one before it ends
  kKeyText,
  kPathEnds,
  kPathText,
  kRecordOffsets,  // uint64
  kRecordLengths,
  kOffsets,  // uint64, of a field; all bits set: the record lacks it
  kLengths,
  kHashes,
};

Bytes ColumnOf(const ShardIndex& index, IndexColumn column, size_t field = 0);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_CORE_INDEX_COLUMNS_H_

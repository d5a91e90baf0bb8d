#include "formats/core/index_columns.h"

#include "formats/core/index_layout.h"

namespace shardpack {

Bytes ColumnOf(const ShardIndex& index, IndexColumn column, size_t field) {
  const auto header = LoadLittle<IndexHeader>(index.bytes().data());
  const IndexLayout at = IndexLayoutOf(header);
  const uint64_t numbers = header.records * 8;
  const auto part = [&](uint64_t offset, uint64_t bytes) {
    return index.bytes().subspan(offset, bytes);
  };
  const auto of_field = [&](uint64_t which) {
    return part(at.field_columns + (field * 3 + which) * numbers, numbers);
  };
  switch (column) {
    case IndexColumn::kLabels:
      return part(at.labels, numbers);
    case IndexColumn::kImages:
      return part(at.images, header.records * sizeof(ImageInfo));
    case IndexColumn::kKeyEnds:
      return part(at.key_ends, numbers);
    case IndexColumn::kKeyText:
      return part(at.key_blob, header.keys_bytes);
    case IndexColumn::kPathEnds:
      return part(at.path_ends, numbers);
    case IndexColumn::kPathText:
      return part(at.path_blob, header.paths_bytes);
    case IndexColumn::kRecordOffsets:
      return part(at.record_offsets, numbers);
    case IndexColumn::kRecordLengths:
      return part(at.record_lengths, numbers);
    case IndexColumn::kOffsets:
      return of_field(0);
    case IndexColumn::kLengths:
      return of_field(1);
    case IndexColumn::kHashes:
      return of_field(2);
  }
  return {};
}

}  // namespace shardpack

// IndexLayout: where the parts of a `.pidx` are, by the counts in its header
// (docs/formats/pidx.md).
//
//   const IndexLayout at = IndexLayoutOf(LoadLittle<IndexHeader>(bytes.data()));
//   LoadLittle<int64_t>(bytes.data() + at.labels + 8 * record);
//
// Thread-safety: pure functions.
// Errors: none; the counts must have been checked against the file's size.
// Units: bytes from the start of the file.
#ifndef SHARDPACK_FORMATS_CORE_INDEX_LAYOUT_H_
#define SHARDPACK_FORMATS_CORE_INDEX_LAYOUT_H_

#include <cstdint>
#include <utility>

#include "formats/core/image_info.h"

namespace shardpack {

struct IndexHeader {
  char magic[8];
  uint32_t version, fields;
  uint64_t records;
  uint64_t field_names_bytes, keys_bytes, paths_bytes;
};
static_assert(sizeof(IndexHeader) == 48);

struct IndexLayout {
  uint64_t field_names, record_offsets, record_lengths;
  uint64_t field_columns;  // of each field: offsets, lengths, hashes
  uint64_t labels, images, key_ends, path_ends, key_blob, path_blob;
  uint64_t end;  // where the footer begins
};

// Every part begins at a multiple of this.
constexpr uint64_t PaddedInIndex(uint64_t bytes) { return (bytes + 7) & ~uint64_t{7}; }

constexpr IndexLayout IndexLayoutOf(const IndexHeader& header) {
  uint64_t at = sizeof(IndexHeader);
  const auto take = [&](uint64_t bytes) { return std::exchange(at, at + PaddedInIndex(bytes)); };
  const uint64_t column = header.records * 8;
  IndexLayout layout{};
  layout.field_names = take(header.field_names_bytes);
  layout.record_offsets = take(column);
  layout.record_lengths = take(column);
  layout.field_columns = take(header.fields * 3 * column);
  layout.labels = take(column);
  layout.images = take(header.records * sizeof(ImageInfo));
  layout.key_ends = take(column);
  layout.path_ends = take(column);
  layout.key_blob = take(header.keys_bytes);
  layout.path_blob = take(header.paths_bytes);
  layout.end = at;
  return layout;
}

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_CORE_INDEX_LAYOUT_H_

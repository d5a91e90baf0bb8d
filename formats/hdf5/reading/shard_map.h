// ReadShardMap: finds the datasets of an HDF5 file that hold images, labels and keys, and the
// position of each sample's bytes.
//
//   absl::StatusOr<ShardMap> map = ReadShardMap(reader, findings);
//   Extent image = map->fields[0].extents[7];
//
// It knows the layouts packed, vlen and decoded, and similar files of other writers: FORMAT.md
// lists the names it looks for.
//
// Lifetime: the result owns everything.
// Errors: as Hdf5Reader if nothing can be delivered; damage to a single sample or a further field
// is a finding, and the extent is absent.
// Memory: 16 bytes per sample and field, labels, keys; at most a few times the file's size, because
// another hard link to the data of a field is left out.
// Units: bytes from the start of the file.
#ifndef SHARDPACK_FORMATS_HDF5_READING_SHARD_MAP_H_
#define SHARDPACK_FORMATS_HDF5_READING_SHARD_MAP_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/core/finding.h"
#include "formats/core/image_info.h"
#include "formats/core/sample.h"
#include "formats/hdf5/reading/hdf5_reader.h"

namespace shardpack {

struct MappedExtent {
  uint64_t offset = kUndefinedAddress, length = 0;  // undefined: damaged
};

struct MappedField {
  std::string name;                   // kImageField for the first
  std::vector<MappedExtent> extents;  // one per sample; none: no field of the samples
};

// The strings of a dataset, one per sample, or none.
struct TextColumn {
  std::string bytes;
  std::vector<uint64_t> ends;  // in `bytes`

  std::string_view at(uint64_t row) const {
    if (ends.empty()) return {};
    const uint64_t begin = row == 0 ? 0 : ends[row - 1];
    return std::string_view(bytes).substr(begin, ends[row] - begin);
  }
};

struct ShardMap {
  uint64_t samples = 0;
  std::vector<MappedField> fields;  // [0] = image
  std::vector<int64_t> labels;      // empty: none
  TextColumn keys, source_paths;
  // The part of an image's record around its bytes: a heap object's header and its padding.
  uint64_t before_image = 0, image_alignment = 1;
  // kRaw if the images are pixels of this shape.
  ImageInfo image = {};
};

absl::StatusOr<ShardMap> ReadShardMap(Hdf5Reader& reader, FindingSink& findings);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_HDF5_READING_SHARD_MAP_H_

// SampleRow: a sample as a walk over shards and their indexes meets it.
//
//   for (uint64_t record = 0; record < index.records(); ++record, ++id) {
//     const SampleRow row{.id = id, .shard = shard, .index = index, .record = record};
//     absl::StatusOr<ImageInfo> image = ImageOf(dataset, row);
//   }
//
// Lifetime: borrows shard and index.
// Thread-safety: pure except for the file.
// Errors: I/O Status; damage gives an unknown image.
#ifndef SHARDPACK_READERS_DATASET_SAMPLE_ROW_H_
#define SHARDPACK_READERS_DATASET_SAMPLE_ROW_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "formats/core/image_info.h"
#include "formats/core/shard_index.h"
#include "formats/io/bytes.h"
#include "readers/dataset/dataset.h"

namespace shardpack {

struct SampleRow {
  uint64_t id = 0;  // over all shards
  const DatasetShard& shard;
  const ShardIndex& index;
  uint64_t record = 0;  // within the shard
};

// The image facts from the sample's index or, for a third-party shard, whose index has none, from
// the image itself; unknown if it cannot be read.
absl::StatusOr<ImageInfo> ImageOf(const Dataset& dataset, const SampleRow& row);
// The same if the image's bytes have been read.
ImageInfo ImageOf(const SampleRow& row, Bytes image);

}  // namespace shardpack

#endif  // SHARDPACK_READERS_DATASET_SAMPLE_ROW_H_

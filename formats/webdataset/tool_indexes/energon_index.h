// The index files of Energon (NVIDIA Megatron-Energon): one next to each shard, and the folder
// .nv-meta.
//
//   absl::StatusOr<std::vector<NamedBytes>> files = MakeEnergonIndex(input);
//   // train-000000.tar.idx          offsets of the samples, and where the last one ends, as uint64
//   // .nv-meta/.info.json           samples of each shard
//   // .nv-meta/split.yaml           the shards of each split; train, val and test always
//   // .nv-meta/dataset.yaml         how a sample is read: ImageClassificationSample
//   // .nv-meta/index.uuid           the dataset's identity, so that equal data has an equal one
//   // .nv-meta/index.sqlite         samples and their parts, by key
//
// A sample begins at the first block of its first member, extension records included, and ends
// where the next one begins.
//
// Lifetime, thread-safety: a pure function, except for a temporary file in input.scratch
// (input.root if that is empty).
// Memory: the complete database, about 250 bytes per sample.
// Errors: InvalidArgument for a key that is not UTF-8 or not unique, and for a shard without
// samples; DataLoss for a damaged shard; else read errors and SQLite's.
// Units: bytes from the start of the shard.
// Source: NVIDIA/Megatron-Energon,
// src/megatron/energon/flavors/webdataset/{config,itar,indexing,prepare,structs}.py.
#ifndef SHARDPACK_FORMATS_WEBDATASET_TOOL_INDEXES_ENERGON_INDEX_H_
#define SHARDPACK_FORMATS_WEBDATASET_TOOL_INDEXES_ENERGON_INDEX_H_

#include <vector>

#include "absl/status/statusor.h"
#include "formats/core/format.h"

namespace shardpack {

// The sidecar "energon".
absl::StatusOr<std::vector<NamedBytes>> MakeEnergonIndex(const SidecarInput& input);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_WEBDATASET_TOOL_INDEXES_ENERGON_INDEX_H_

// The index for wids (random access to WebDataset shards): <split>.json, with the size, the number
// of samples and the MD5 of each shard.
//
//   absl::StatusOr<std::vector<NamedBytes>> files = MakeWidsIndexes(input);
//   // train.json: {"__kind__": "wids-shard-index-v1", "name": "train", "wids_version": 1,
//   //   "shardlist": [{"url": "train-000000.tar", "md5sum": ..., "nsamples": 50, "filesize": ...}]}
//
// URLs are relative to the folder of the JSON file. Each shard is read in full.
//
// Errors: InvalidArgument for a member whose name wids misreads (it only reads the 100-byte name of
// the header, not the prefix or pax records, and it splits its list of names at newlines);
// DataLoss for a damaged shard; else read errors.
// Units: bytes, samples.
// Source: webdataset/webdataset v0.2.107, wids/wids_index.py, wids_specs.py, wids_mmtar.py.
#ifndef SHARDPACK_FORMATS_WEBDATASET_TOOL_INDEXES_WIDS_INDEX_H_
#define SHARDPACK_FORMATS_WEBDATASET_TOOL_INDEXES_WIDS_INDEX_H_

#include <vector>

#include "absl/status/statusor.h"
#include "formats/core/format.h"

namespace shardpack {

// The sidecar "wids": one file per split that has shards.
absl::StatusOr<std::vector<NamedBytes>> MakeWidsIndexes(const SidecarInput& input);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_WEBDATASET_TOOL_INDEXES_WIDS_INDEX_H_

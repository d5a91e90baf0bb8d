// _info.json, which timm's webdataset reader looks for: the shards of each split and their sample
// counts.
//
//   absl::StatusOr<std::vector<NamedBytes>> files = MakeTimmInfo(input);
//   // _info.json: {"splits": {"train": {"alt_label": "", "filenames": [...], "name": "train",
//   //              "num_samples": 100, "shard_lengths": [50, 50]}}}
//
// An empty alt_label means that the label is the member "cls". Splits without shards are left out.
//
// Lifetime, thread-safety: a pure function.
// Units: samples.
// Source: huggingface/pytorch-image-models, timm/data/readers/reader_wds.py.
#ifndef SHARDPACK_FORMATS_WEBDATASET_TOOL_INDEXES_TIMM_INFO_H_
#define SHARDPACK_FORMATS_WEBDATASET_TOOL_INDEXES_TIMM_INFO_H_

#include <vector>

#include "absl/status/statusor.h"
#include "formats/core/format.h"

namespace shardpack {

// The sidecar "timm".
absl::StatusOr<std::vector<NamedBytes>> MakeTimmInfo(const SidecarInput& input);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_WEBDATASET_TOOL_INDEXES_TIMM_INFO_H_

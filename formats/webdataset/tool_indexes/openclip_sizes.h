// sizes.json: open_clip looks up the number of samples of a set of shards in it.
//
//   absl::StatusOr<std::vector<NamedBytes>> files = MakeOpenClipSizes(input);
//   // sizes.json: {"train-000000.tar": 50, "train-000001.tar": 50}
//
// Lifetime, thread-safety: a pure function.
// Units: samples.
// Source: mlfoundations/open_clip, src/open_clip_train/data.py (get_dataset_size). Its reader only
// takes samples with a member "txt".
#ifndef SHARDPACK_FORMATS_WEBDATASET_TOOL_INDEXES_OPENCLIP_SIZES_H_
#define SHARDPACK_FORMATS_WEBDATASET_TOOL_INDEXES_OPENCLIP_SIZES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "formats/core/format.h"

namespace shardpack {

// The sidecar "openclip".
absl::StatusOr<std::vector<NamedBytes>> MakeOpenClipSizes(const SidecarInput& input);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_WEBDATASET_TOOL_INDEXES_OPENCLIP_SIZES_H_

// The index that NVIDIA DALI's webdataset reader takes: <shard without .tar>.idx, text, one line a
// sample.
//
//   absl::StatusOr<std::string> text = DaliIndexText(file, size, "train-000000.tar");
//   // v1.2 2
//   // cls 512 1 cat/1.cls jpg 1536 20480 cat/1.jpg ...
//
// Errors: InvalidArgument for a shard that DALI cannot index (no sample, an empty extension or one
// with white space); DataLoss for a damaged one; else those of the reads. Only headers are read.
// Units: bytes from the start of the shard. Source: NVIDIA/DALI, tools/wds2idx.py and
// dali/operators/reader/loader/webdataset_loader.cc.
#ifndef SHARDPACK_FORMATS_WEBDATASET_TOOL_INDEXES_DALI_INDEX_H_
#define SHARDPACK_FORMATS_WEBDATASET_TOOL_INDEXES_DALI_INDEX_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/core/format.h"
#include "formats/io/file.h"

namespace shardpack {

absl::StatusOr<std::string> DaliIndexText(const File& file, uint64_t size_bytes,
                                          std::string_view shard_name);

// One file for each shard of the dataset: the sidecar "dali".
absl::StatusOr<std::vector<NamedBytes>> MakeWebdatasetDaliIndexes(const SidecarInput& input);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_WEBDATASET_TOOL_INDEXES_DALI_INDEX_H_

// The index for NVIDIA DALI's webdataset reader: <shard without .tar>.idx, a text file with one
// line per sample.
//
//   absl::StatusOr<std::string> text = DaliIndexText(file, size, "train-000000.tar");
//   // v1.2 2
//   // cls 512 1 cat/1.cls jpg 1536 20480 cat/1.jpg ...
//
// Errors: InvalidArgument for a shard that DALI cannot index (no samples, an empty extension, or an
// extension with whitespace); DataLoss for a damaged shard; else read errors. Only headers are
// read.
// Units: bytes from the start of the shard.
// Source: NVIDIA/DALI, tools/wds2idx.py and dali/operators/reader/loader/webdataset_loader.cc.
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

// The sidecar "dali": one file per shard of the dataset.
absl::StatusOr<std::vector<NamedBytes>> MakeWebdatasetDaliIndexes(const SidecarInput& input);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_WEBDATASET_TOOL_INDEXES_DALI_INDEX_H_

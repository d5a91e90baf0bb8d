// CheckIndexedShards: checks that shards indexed in place have not changed since.
//
//   RETURN_IF_ERROR(CheckIndexedShards(dataset, "indexed/", pool));
//
// Other programs write such shards. Labels and keys come from the index, but its hashes cover only
// images and other fields: a shard whose labels were changed in place would pass with its old
// labels. So every byte is read. Datasets that pack built pass at once, and so do single shards,
// which are scanned when opened.
//
// Thread-safety: one caller; uses all threads of the pool.
// Errors: DataLoss, naming the first such shard and the command that indexes it again; I/O.
#ifndef SHARDPACK_CONVERTERS_SOURCES_INDEXED_SHARDS_H_
#define SHARDPACK_CONVERTERS_SOURCES_INDEXED_SHARDS_H_

#include <string>

#include "absl/status/status.h"
#include "converters/threads/io_pool.h"
#include "readers/dataset/dataset.h"

namespace shardpack {

// `folder`: the folder of the manifest, for the command.
absl::Status CheckIndexedShards(const Dataset& dataset, const std::string& folder, IoPool& pool);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_INDEXED_SHARDS_H_

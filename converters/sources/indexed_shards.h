// CheckIndexedShards: whether shards that were indexed in place are still those that were indexed.
//
//   RETURN_IF_ERROR(CheckIndexedShards(dataset, "indexed/", pool));
//
// Other programs write such shards. Labels and keys are read from the index, and the hashes in it
// are those of images and other fields: a shard whose labels were changed in place would pass with
// the old ones. So every byte is read. Datasets that pack has built, and lone shards, which are
// scanned when they are opened, pass at once.
//
// Thread-safety: one caller; uses all threads of the pool.
// Errors: DataLoss, naming the first such shard and the command that indexes it anew; I/O.
#ifndef SHARDPACK_CONVERTERS_SOURCES_INDEXED_SHARDS_H_
#define SHARDPACK_CONVERTERS_SOURCES_INDEXED_SHARDS_H_

#include <string>

#include "absl/status/status.h"
#include "converters/threads/io_pool.h"
#include "readers/dataset/dataset.h"

namespace shardpack {

// `folder`: where the manifest lies, for the command.
absl::Status CheckIndexedShards(const Dataset& dataset, const std::string& folder, IoPool& pool);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_INDEXED_SHARDS_H_

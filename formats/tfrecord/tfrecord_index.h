// The index that NVIDIA DALI (tools/tfrecord2idx) and vahidk/tfrecord use: the position of each
// record in a TFRecord file.
//
//   auto files = MakeTfrecordDaliIndexes(input);              // <shard>.idx for each shard
//   std::string text = DaliIndexText(shard_index);    // "0 1041", "1041 998", ...
//
// One line per record, "offset size": the offset of its length field, and the payload size plus 16
// bytes (NVIDIA/DALI: tools/tfrecord2idx; vahidk/tfrecord: tfrecord/tools/tfrecord2idx.py).
// vahidk's reader cannot load the index of a single record.
//
// Lifetime: owned results.
// Errors: InvalidArgument if the numbers of shards in indexes and manifest differ.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_TFRECORD_TFRECORD_INDEX_H_
#define SHARDPACK_FORMATS_TFRECORD_TFRECORD_INDEX_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/core/format.h"
#include "formats/core/shard_index.h"

namespace shardpack {

std::string DaliIndexText(const ShardIndex& index);

// `make` of the sidecar "dali".
absl::StatusOr<std::vector<NamedBytes>> MakeTfrecordDaliIndexes(const SidecarInput& input);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_TFRECORD_TFRECORD_INDEX_H_

// IndexName: the file name of a shard's index.
//
//   std::string name = IndexName("train-000000.tar");   // train-000000.pidx
//
// The shard's name with its extension replaced, so that a pattern for shards (*.tar*) matches no
// index. An extension is a dot, a letter, and then letters and digits: part.0 and
// train.tfrecord-00000-of-00012 have none, so the suffix is appended to the whole name. Two shards
// can have the same index name (a.h5 and a.hdf5); callers that do not choose the shards' names must
// check for that. The manifest of a dataset gives the names of its indexes; older versions used the
// whole name of the shard.
#ifndef SHARDPACK_FORMATS_CORE_INDEX_NAME_H_
#define SHARDPACK_FORMATS_CORE_INDEX_NAME_H_

#include <string>
#include <string_view>

namespace shardpack {

std::string IndexName(std::string_view shard);
// Appends to the whole name of the shard, so no two shards share an index name.
std::string LongIndexName(std::string_view shard);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_CORE_INDEX_NAME_H_

// IndexName: what the index of a shard is called.
//
//   std::string name = IndexName("train-000000.tar");   // train-000000.pidx
//
// The shard's name without its extension, so that a pattern for shards (*.tar*) meets no index. An
// extension is a dot and what follows it, a letter and then letters and digits: part.0 and
// train.tfrecord-00000-of-00012 have none, and the suffix comes after the whole name. Two shards
// may have one index name (a.h5 and a.hdf5); whoever names files that others chose must look for
// that. Of a dataset its manifest says what the indexes are called: those of older versions have
// the whole name of the shard.
#ifndef SHARDPACK_FORMATS_CORE_INDEX_NAME_H_
#define SHARDPACK_FORMATS_CORE_INDEX_NAME_H_

#include <string>
#include <string_view>

namespace shardpack {

std::string IndexName(std::string_view shard);
// With the whole name of the shard: no two shards share one.
std::string LongIndexName(std::string_view shard);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_CORE_INDEX_NAME_H_

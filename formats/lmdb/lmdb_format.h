// kLmdbFormat: the row of the table of formats for LMDB environments (FORMAT.md).
//
//   auto writer = kLmdbFormat.create(staged_file, ShardSpec{.layout = "raw"});
//   std::string name = kLmdbFormat.shard_name("train", 0, 12);   // train-00000-of-00012.lmdb
//   std::string_view file = kLmdbFormat.traits.data_file;        // data.mdb, in that folder
//
// Lifetime: static storage, constant-initialised.
// Thread-safety: any thread.
// Errors: as Format. One environment a shard, without a lock file; readers make one when they lock.
#ifndef SHARDPACK_FORMATS_LMDB_LMDB_FORMAT_H_
#define SHARDPACK_FORMATS_LMDB_LMDB_FORMAT_H_

#include "formats/core/format.h"

namespace shardpack {

extern const Format kLmdbFormat;

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_LMDB_LMDB_FORMAT_H_

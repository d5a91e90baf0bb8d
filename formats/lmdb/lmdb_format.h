// kLmdbFormat: the entry for LMDB environments in the table of formats (FORMAT.md).
//
//   auto writer = kLmdbFormat.create(staged_file, ShardSpec{.layout = "raw"});
//   std::string name = kLmdbFormat.shard_name("train", 0, 12);   // train-00000-of-00012.lmdb
//   std::string_view file = kLmdbFormat.traits.data_file;        // data.mdb, in that folder
//
// Each shard is one environment, without a lock file; readers create one when they lock.
//
// Lifetime: static storage, constant-initialised.
// Thread-safety: any thread.
// Errors: as Format.
#ifndef SHARDPACK_FORMATS_LMDB_LMDB_FORMAT_H_
#define SHARDPACK_FORMATS_LMDB_LMDB_FORMAT_H_

#include "formats/core/format.h"

namespace shardpack {

extern const Format kLmdbFormat;

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_LMDB_LMDB_FORMAT_H_

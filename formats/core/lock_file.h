// LockFileOf: what programs of a format leave beside the data of a shard that is a folder.
//
//   if (name == LockFileOf(format)) continue;   // no part of the dataset
//
// Lifetime: static storage. Thread-safety: a pure function. Errors: none.
#ifndef SHARDPACK_FORMATS_CORE_LOCK_FILE_H_
#define SHARDPACK_FORMATS_CORE_LOCK_FILE_H_

#include <string_view>

#include "formats/core/format.h"

namespace shardpack {

// Empty when there is none. liblmdb makes lock.mdb beside data.mdb, even to read (mdb.c: LOCKNAME).
inline std::string_view LockFileOf(const Format& format) {
  return format.traits.data_file == "data.mdb" ? "lock.mdb" : "";
}

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_CORE_LOCK_FILE_H_

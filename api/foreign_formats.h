// ForeignFormats: the formats of other programs' shards that the library can open. The others need
// libraries that a host process should not load (HDF5, SQLite, ...).
//
//   absl::StatusOr<Dataset> dataset = Dataset::Open(path, ForeignFormats());
//
// Thread-safety: any thread.
#ifndef SHARDPACK_API_FOREIGN_FORMATS_H_
#define SHARDPACK_API_FOREIGN_FORMATS_H_

#include <span>

#include "formats/core/format.h"

namespace shardpack::api {

std::span<const Format* const> ForeignFormats();

}  // namespace shardpack::api

#endif  // SHARDPACK_API_FOREIGN_FORMATS_H_

// ListFolder: the names in a folder, sorted.
//
//   absl::StatusOr<std::vector<std::string>> names = ListFolder("OUT/.pack");
//
// Thread-safety: any thread.
// Errors: IoStatus; after an error no names are returned, even if some were read.
#ifndef SHARDPACK_FORMATS_IO_LIST_FOLDER_H_
#define SHARDPACK_FORMATS_IO_LIST_FOLDER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace shardpack {

absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_IO_LIST_FOLDER_H_

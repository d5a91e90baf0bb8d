// ListFolder: the names in a folder, sorted.
//
//   absl::StatusOr<std::vector<std::string>> names = ListFolder("OUT/.pack");
//
// Thread-safety: any thread.
// Errors: IoStatus; names that were read before an error are not an answer.
#ifndef SHARDPACK_FORMATS_IO_LIST_FOLDER_H_
#define SHARDPACK_FORMATS_IO_LIST_FOLDER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace shardpack {

absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_IO_LIST_FOLDER_H_

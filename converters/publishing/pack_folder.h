// PackFolder: what pack itself has put into `.pack` of a dataset's folder, by name; the rest is
// somebody else's.
//
//   absl::StatusOr<std::vector<std::string>> others = OthersInPackFolder(*folder);   // ".pack/mine"
//   absl::Status removed = RemovePackFolder(*folder);        // leaves those, and then `.pack`
//
// Thread-safety: any thread; removing under the lock of the folder.
// Errors: those of OwnedFolder and of listing.
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_PACK_FOLDER_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_PACK_FOLDER_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "converters/publishing/owned_folder.h"

namespace shardpack {

// Of an entry of `.pack`.
bool IsMadeByPack(std::string_view name);

// Relative to the dataset's folder, sorted; none when there is no `.pack`.
absl::StatusOr<std::vector<std::string>> OthersInPackFolder(const OwnedFolder& dataset);

// The lock goes last but for the folder itself.
absl::Status RemovePackFolder(const OwnedFolder& dataset);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_PACK_FOLDER_H_

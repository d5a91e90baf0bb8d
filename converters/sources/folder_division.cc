#include "converters/sources/folder_division.h"

#include <algorithm>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "converters/sources/folder_access.h"
#include "formats/io/relative_path.h"

namespace shardpack {

bool FolderDivision::IsWhole() const {
  absl::flat_hash_set<std::string_view> folders;
  for (const FolderPart& part : parts) {
    for (const std::string& path : part) {
      if (!path.empty() && !IsPlainPath(path)) return false;
      if (!folders.insert(path).second) return false;
    }
  }
  return folders.contains("") &&
         std::all_of(folders.begin(), folders.end(),
                     [&](std::string_view path) { return folders.contains(FolderAbove(path)); });
}

}  // namespace shardpack

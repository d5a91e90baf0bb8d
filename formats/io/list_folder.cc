#include "formats/io/list_folder.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "formats/io/file.h"

namespace shardpack {

absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator it(path, error), end; !error && it != end;
       it.increment(error)) {
    names.push_back(it->path().filename().native());
  }
  if (error) return IoStatus("list", path, error.value());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace shardpack

#include "formats/core/dataset_parts.h"

#include <algorithm>
#include <vector>

#include "formats/core/manifest.h"
#include "formats/io/list_folder.h"
#include "formats/io/status_macros.h"

namespace shardpack {

bool HasIndex(std::span<const std::string> names) {
  return std::any_of(names.begin(), names.end(),
                     [](const std::string& name) { return name.ends_with(kIndexSuffix); });
}

absl::StatusOr<bool> HoldsDatasetParts(const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(folder));
  return HasIndex(names) || std::find(names.begin(), names.end(), ".pack") != names.end();
}

}  // namespace shardpack

#include "formats/core/dataset_parts.h"

#include <algorithm>
#include <vector>

#include "formats/core/manifest.h"
#include "formats/io/list_folder.h"
#include "formats/io/status_macros.h"

namespace shardpack {

absl::StatusOr<bool> HoldsDatasetParts(const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(folder));
  return std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return name == ".pack" || name.ends_with(kIndexSuffix);
  });
}

}  // namespace shardpack

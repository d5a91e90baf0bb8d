#include "formats/core/dataset_parts.h"

#include <algorithm>
#include <vector>

#include "formats/core/manifest.h"
#include "formats/io/list_folder.h"

namespace shardpack {

absl::StatusOr<bool> HoldsDatasetParts(const std::string& folder) {
  const absl::StatusOr<std::vector<std::string>> names = ListFolder(folder);
  if (!names.ok()) return names.status();
  return std::any_of(names->begin(), names->end(),
                     [](const std::string& name) { return name == ".pack" || name.ends_with(kIndexSuffix); });
}

}  // namespace shardpack

#include "formats/webdataset/tool_indexes/openclip_sizes.h"

#include <nlohmann/json.hpp>

#include "formats/core/manifest.h"

namespace shardpack {

absl::StatusOr<std::vector<NamedBytes>> MakeOpenClipSizes(const SidecarInput& input) {
  nlohmann::json sizes = nlohmann::json::object();
  for (const ManifestShard& shard : input.manifest.shards) sizes[shard.name] = shard.records;
  return std::vector<NamedBytes>{{"sizes.json", sizes.dump(1) + "\n"}};
}

}  // namespace shardpack

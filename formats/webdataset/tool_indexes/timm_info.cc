#include "formats/webdataset/tool_indexes/timm_info.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "formats/core/manifest.h"

namespace shardpack {

absl::StatusOr<std::vector<NamedBytes>> MakeTimmInfo(const SidecarInput& input) {
  // Names of shards and splits are ASCII (IsDatasetFileName), so dump() cannot fail.
  nlohmann::json splits = nlohmann::json::object();
  for (const ManifestShard& shard : input.manifest.shards) {
    nlohmann::json& split = splits[shard.split];
    if (split.is_null()) {
      split = {{"name", shard.split},
               {"num_samples", uint64_t{0}},
               {"filenames", nlohmann::json::array()},
               {"shard_lengths", nlohmann::json::array()},
               {"alt_label", ""}};
    }
    split["num_samples"] = split["num_samples"].get<uint64_t>() + shard.records;
    split["filenames"].push_back(shard.name);
    split["shard_lengths"].push_back(shard.records);
  }
  const nlohmann::json info = {{"splits", std::move(splits)}};
  return std::vector<NamedBytes>{{"_info.json", info.dump(1) + "\n"}};
}

}  // namespace shardpack

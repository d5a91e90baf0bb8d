#include "validators/looking/shards_with_index.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "formats/core/manifest.h"
#include "formats/core/shard_index.h"
#include "formats/io/escape.h"
#include "formats/io/status_macros.h"
#include "validators/looking/shard_loop.h"

namespace shardpack {

namespace {

void RemoveSentencesOf(const std::string& file, std::vector<std::string>& sentences) {
  const std::string path_end = absl::StrCat("/", EscapeForTerminal(file), " ");
  std::erase_if(sentences,
                [&](const std::string& each) { return each.find(path_end) != each.npos; });
}

}  // namespace

absl::StatusOr<Dataset> ShardsWithIndex(const Dataset& dataset, DatasetDamage& damage) {
  const auto nothing = [](uint32_t, const ShardIndex&) { return absl::OkStatus(); };
  if (ForEachShard(dataset, nothing).ok()) return dataset;
  std::vector<uint32_t> left;
  for (uint32_t shard = 0; shard < dataset.shards().size(); ++shard) {
    const absl::Status opened = dataset.BorrowIndex(shard).status();
    if (absl::IsFailedPrecondition(opened)) return opened;
    if (opened.ok()) {
      left.push_back(shard);
    } else {
      damage.not_looked_at.emplace_back(opened.message());
      if (dataset.manifest() != nullptr)
        RemoveSentencesOf(dataset.manifest()->shards[shard].index.name, damage.files);
    }
  }
  return dataset.WithShards(left);
}

}  // namespace shardpack

#include "formats/tfrecord/tfrecord_index.h"

#include "absl/strings/str_cat.h"

namespace shardpack {

std::string DaliIndexText(const ShardIndex& index) {
  std::string text;
  for (uint64_t i = 0; i < index.records(); ++i) {
    const Extent record = index.record(i);
    absl::StrAppend(&text, record.offset, " ", record.length, "\n");
  }
  return text;
}

absl::StatusOr<std::vector<NamedBytes>> MakeTfrecordDaliIndexes(const SidecarInput& input) {
  const std::vector<ManifestShard>& shards = input.manifest.shards;
  if (shards.size() != input.indexes.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the manifest lists ", shards.size(),
                                                   " shards, ", input.indexes.size(),
                                                   " indexes were given"));
  }
  std::vector<NamedBytes> files;
  files.reserve(shards.size());
  for (size_t i = 0; i < shards.size(); ++i) {
    files.push_back({shards[i].name + ".idx", DaliIndexText(input.indexes[i])});
  }
  return files;
}

}  // namespace shardpack

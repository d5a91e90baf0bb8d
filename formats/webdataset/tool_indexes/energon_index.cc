#include "formats/webdataset/tool_indexes/energon_index.h"

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/core/manifest.h"
#include "formats/io/bytes.h"
#include "formats/io/status_macros.h"
#include "formats/webdataset/tool_indexes/energon_database.h"
#include "formats/webdataset/tool_indexes/shard_members.h"
#include "formats/webdataset/webdataset_layout.h"

namespace shardpack {
namespace {

constexpr char kFolder[] = ".nv-meta/";
constexpr char kScratchName[] = "energon-index.sqlite";
// Energon's commands require these three, even if empty.
constexpr const char* kSplits[] = {"train", "val", "test"};

// The shards in the order in which the database numbers them: that of .info.json, sorted by name.
std::vector<const ManifestShard*> ShardsByName(const Manifest& manifest) {
  std::vector<const ManifestShard*> shards;
  for (const ManifestShard& shard : manifest.shards) shards.push_back(&shard);
  std::sort(shards.begin(), shards.end(),
            [](const ManifestShard* a, const ManifestShard* b) { return a->name < b->name; });
  return shards;
}

// Indexes one shard: its .idx, and its rows in the database.
class ShardIndexer {
 public:
  ShardIndexer(EnergonDatabase& database, uint64_t shard) : database_(database), shard_(shard) {}

  absl::Status OnMember(const ShardMember& member) {
    if (member.begins_sample) {
      RETURN_IF_ERROR(EndSample(member.offset));
      AppendOffset(member.offset);
      key_.assign(member.key);
      begin_ = member.offset;
      ++samples_;
    }
    return database_.AddPart({.shard = shard_, .sample = samples_ - 1}, member.extension,
                             member.data_offset, member.size_bytes);
  }

  absl::StatusOr<std::string> Finish(uint64_t end) {
    RETURN_IF_ERROR(EndSample(end));
    AppendOffset(end);
    return std::move(offsets_);
  }

  uint64_t samples() const { return samples_; }

 private:
  absl::Status EndSample(uint64_t end) {
    if (samples_ == 0) return absl::OkStatus();
    return database_.AddSample({.shard = shard_, .sample = samples_ - 1}, key_, begin_,
                               end - begin_);
  }
  void AppendOffset(uint64_t offset) {
    std::byte bytes[sizeof(offset)];
    StoreLittle(bytes, offset);
    offsets_.append(AsText(bytes));
  }

  EnergonDatabase& database_;
  const uint64_t shard_;
  uint64_t samples_ = 0, begin_ = 0;
  std::string key_, offsets_;
};

// Names of shards and splits are portable. They are quoted because YAML would read some of them as
// numbers or booleans.
std::string SplitYaml(const Manifest& manifest) {
  std::map<std::string, std::vector<std::string>> splits;
  for (const char* name : kSplits) splits[name];
  for (const auto& [name, records] : manifest.splits) splits[name];
  for (const ManifestShard& shard : manifest.shards) splits[shard.split].push_back(shard.name);
  std::string text = "split_parts:\n";
  for (const auto& [name, shards] : splits) {
    absl::StrAppend(&text, "  \"", name, "\":", shards.empty() ? " []" : "", "\n");
    for (const std::string& shard : shards) absl::StrAppend(&text, "  - \"", shard, "\"\n");
  }
  return text + "exclude: []\n";
}

// A JSON string is also a YAML string.
std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', /*ensure_ascii=*/true,
                                   nlohmann::json::error_handler_t::replace);
}

// The image member has either the same name in all samples or one that depends on its content. In
// the second case, Energon takes the first name that a sample has.
std::string ImageFields(const Manifest& manifest) {
  if (const auto named = manifest.options.find("image-field"); named != manifest.options.end()) {
    return named->second;
  }
  std::string names;
  for (const auto& [name, count] : manifest.facts.image_formats) {
    absl::StrAppend(&names, names.empty() ? "" : ",", name);
  }
  return names.empty() ? "jpg" : names;
}

std::string DatasetYaml(const Manifest& manifest) {
  std::string text = absl::StrCat(
      "sample_type:\n  __module__: megatron.energon\n  __class__: ImageClassificationSample\n",
      "field_map:\n  image: ", Quoted(ImageFields(manifest)), "\n");
  if (!manifest.classes.empty()) {
    absl::StrAppend(&text, "  label: \"", std::string(kLabelExtension), "\"\n");
  }
  return text;
}

// RFC 9562, version 8 (custom) and its variant, around the bits of the identity.
std::string Uuid(const Digest& identity) {
  Digest bits = identity;
  bits.high = (bits.high & ~uint64_t{0xf000}) | 0x8000;
  bits.low = (bits.low & ~(uint64_t{3} << 62)) | uint64_t{1} << 63;
  const std::string hex = bits.ToHex();
  return absl::StrCat(hex.substr(0, 8), "-", hex.substr(8, 4), "-", hex.substr(12, 4), "-",
                      hex.substr(16, 4), "-", hex.substr(20));
}

}  // namespace

absl::StatusOr<std::vector<NamedBytes>> MakeEnergonIndex(const SidecarInput& input) {
  const std::string scratch(input.scratch.empty() ? input.root : input.scratch);
  ASSIGN_OR_RETURN(std::unique_ptr<EnergonDatabase> database,
                   EnergonDatabase::Create(absl::StrCat(scratch, "/", kScratchName)));
  std::vector<NamedBytes> files;
  nlohmann::json counts = nlohmann::json::object();
  for (const ManifestShard* shard : ShardsByName(input.manifest)) {
    ShardIndexer indexer(*database, files.size());
    ASSIGN_OR_RETURN(uint64_t end, VisitMembers(input, *shard, [&](const ShardMember& member) {
                       return indexer.OnMember(member);
                     }));
    ASSIGN_OR_RETURN(std::string offsets, indexer.Finish(end));
    if (indexer.samples() == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(shard->name, ": Energon takes no shard without samples"));
    }
    files.push_back({shard->name + ".idx", std::move(offsets)});
    counts[shard->name] = indexer.samples();
  }
  ASSIGN_OR_RETURN(std::string table, database->Finish());
  const nlohmann::json info = {{"shard_counts", std::move(counts)}};
  const auto add = [&](const char* name, std::string bytes) {
    files.push_back({absl::StrCat(kFolder, name), std::move(bytes)});
  };
  add(".info.json", info.dump(1) + "\n");
  add("split.yaml", SplitYaml(input.manifest));
  add("dataset.yaml", DatasetYaml(input.manifest));
  add("index.uuid", Uuid(input.manifest.Identity()));
  add("index.sqlite", std::move(table));
  return files;
}

}  // namespace shardpack

#include "formats/webdataset/tool_indexes/wids_index.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/core/manifest.h"
#include "formats/io/crypto_hash.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"
#include "formats/webdataset/tool_indexes/shard_members.h"

namespace shardpack {
namespace {

constexpr size_t kMaxNameBytes = 100;  // of a ustar header, without the prefix
constexpr uint64_t kBlockBytes = 1 << 20;

constexpr char kKind[] = "wids-shard-index-v1";

absl::Status CheckMembers(const SidecarInput& input, const ManifestShard& shard) {
  return VisitMembers(
             input, shard,
             [&](const ShardMember& member) -> absl::Status {
               if (member.name.size() <= kMaxNameBytes && !member.has_extension_record &&
                   member.name.find('\n') == member.name.npos) {
                 return absl::OkStatus();
               }
               return absl::InvalidArgumentError(absl::StrCat(
                   shard.name, ": wids cannot read member \"", EscapeForTerminal(member.name),
                   "\" at offset ", member.offset, ": its name has more than ", kMaxNameBytes,
                   " bytes, an extension record or a newline; use --key index"));
             })
      .status();
}

absl::StatusOr<std::string> Md5Of(const File& file, uint64_t size_bytes) {
  Md5Stream stream;
  std::vector<std::byte> block(std::min(kBlockBytes, size_bytes));
  for (uint64_t at = 0; at < size_bytes;) {
    const std::span<std::byte> into(block.data(),
                                    std::min<uint64_t>(block.size(), size_bytes - at));
    RETURN_IF_ERROR(file.ReadExactlyAt(at, into));
    stream.Update(into);
    at += into.size();
  }
  return stream.FinishHex();
}

absl::StatusOr<nlohmann::json> Describe(const SidecarInput& input, const ManifestShard& shard) {
  RETURN_IF_ERROR(CheckMembers(input, shard));
  ASSIGN_OR_RETURN(File file,
                   File::OpenRead(absl::StrCat(std::string(input.root), "/", shard.name)));
  ASSIGN_OR_RETURN(std::string md5, Md5Of(file, shard.bytes));
  return nlohmann::json{{"url", shard.name},
                        {"md5sum", std::move(md5)},
                        {"nsamples", shard.records},
                        {"filesize", shard.bytes}};
}

}  // namespace

absl::StatusOr<std::vector<NamedBytes>> MakeWidsIndexes(const SidecarInput& input) {
  std::map<std::string, std::map<std::string, const ManifestShard*>> splits;  // both by name
  for (const ManifestShard& shard : input.manifest.shards) splits[shard.split][shard.name] = &shard;
  std::vector<NamedBytes> files;
  for (const auto& [split, shards] : splits) {
    nlohmann::json list = nlohmann::json::array();
    for (const auto& [name, shard] : shards) {
      ASSIGN_OR_RETURN(nlohmann::json entry, Describe(input, *shard));
      list.push_back(std::move(entry));
    }
    const nlohmann::json index = {
        {"__kind__", kKind}, {"wids_version", 1}, {"name", split}, {"shardlist", std::move(list)}};
    files.push_back({split + ".json", index.dump(1) + "\n"});
  }
  return files;
}

}  // namespace shardpack

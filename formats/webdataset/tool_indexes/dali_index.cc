#include "formats/webdataset/tool_indexes/dali_index.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "formats/core/manifest.h"
#include "formats/io/status_macros.h"
#include "formats/webdataset/tool_indexes/shard_members.h"

namespace shardpack {
namespace {

constexpr std::string_view kSuffix = ".tar";

// The loader splits lines at whitespace (webdataset_loader.cc, operator>> on a stringstream).
bool HasSpace(std::string_view text) { return text.find_first_of(" \t\n\r\f\v") != text.npos; }

struct Component {
  std::string extension, name;
  uint64_t data_offset, size_bytes;
  bool begins_sample;
};

absl::StatusOr<std::vector<Component>> ListComponents(const File& file, uint64_t size_bytes,
                                                      std::string_view shard_name) {
  std::vector<Component> components;
  RETURN_IF_ERROR(
      VisitMembers(file, size_bytes, shard_name, [&](const ShardMember& member) -> absl::Status {
        if (member.extension.empty() || HasSpace(member.extension)) {
          return absl::InvalidArgumentError(absl::StrCat(
              EscapeForTerminal(shard_name), ": DALI cannot index member \"",
              EscapeForTerminal(member.name), "\": its extension is empty or has spaces"));
        }
        components.push_back({std::string(member.extension), std::string(member.name),
                              member.data_offset, member.size_bytes, member.begins_sample});
        return absl::OkStatus();
      }).status());
  return components;
}

}  // namespace

absl::StatusOr<std::string> DaliIndexText(const File& file, uint64_t size_bytes,
                                          std::string_view shard_name) {
  ASSIGN_OR_RETURN(std::vector<Component> components, ListComponents(file, size_bytes, shard_name));
  if (components.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(EscapeForTerminal(shard_name), ": DALI takes no index of an empty shard"));
  }
  const size_t samples = std::count_if(components.begin(), components.end(),
                                       [](const Component& c) { return c.begins_sample; });
  // Version 1.1 has no names.
  const bool named = std::none_of(components.begin(), components.end(),
                                  [](const Component& c) { return HasSpace(c.name); });
  std::string text = absl::StrCat(named ? "v1.2 " : "v1.1 ", samples);
  for (const Component& component : components) {
    absl::StrAppend(&text, component.begins_sample ? "\n" : " ", component.extension, " ",
                    component.data_offset, " ", component.size_bytes);
    if (named) absl::StrAppend(&text, " ", component.name);
  }
  text.push_back('\n');
  return text;
}

absl::StatusOr<std::vector<NamedBytes>> MakeWebdatasetDaliIndexes(const SidecarInput& input) {
  std::vector<NamedBytes> files;
  for (const ManifestShard& shard : input.manifest.shards) {
    ASSIGN_OR_RETURN(File file,
                     File::OpenRead(absl::StrCat(std::string(input.root), "/", shard.name)));
    ASSIGN_OR_RETURN(std::string text, DaliIndexText(file, shard.bytes, shard.name));
    std::string name = shard.name;
    if (name.ends_with(kSuffix)) name.resize(name.size() - kSuffix.size());
    files.push_back({name + ".idx", std::move(text)});
  }
  return files;
}

}  // namespace shardpack

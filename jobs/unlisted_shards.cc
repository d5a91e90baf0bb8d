#include "jobs/unlisted_shards.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "converters/listing/first_few.h"
#include "formats/formats.h"
#include "formats/io/list_folder.h"

namespace shardpack {
namespace {

constexpr size_t kNamed = 5;

}  // namespace

std::string UnlistedShards(const std::string& folder, const Manifest& manifest) {
  std::set<std::string> listed;  // if a shard is a folder: that folder
  for (const FileEntry& file : manifest.files)
    listed.insert(file.name.substr(0, file.name.find('/')));
  for (const ManifestShard& shard : manifest.shards) {
    listed.insert(shard.name);
    listed.insert(shard.location.substr(0, shard.location.find('/')));
  }
  const absl::StatusOr<std::vector<std::string>> names = ListFolder(folder);
  std::vector<std::string> unlisted;
  for (const std::string& name : names.ok() ? *names : std::vector<std::string>()) {
    if (listed.contains(name)) continue;
    const absl::StatusOr<const Format*> format = SniffFormat(absl::StrCat(folder, "/", name));
    if (format.ok() && *format != nullptr) unlisted.push_back(name);
  }
  if (unlisted.empty()) return "";
  return absl::StrCat(unlisted.size() == 1
                          ? "a shard that manifest.json does not list, and that is left out: "
                          : "shards that manifest.json does not list, and that are left out: ",
                      FirstFew(unlisted, kNamed));
}

}  // namespace shardpack

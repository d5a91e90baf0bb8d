#include "converters/publishing/pack_folder.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr std::string_view kFolder = ".pack";
constexpr std::array<std::string_view, 9> kMade = {
    "plan", "made", "made-extras", "replaced", "replaces", "index", "index.new", "stage", "lock"};

}  // namespace

bool IsMadeByPack(std::string_view name) {
  return std::find(kMade.begin(), kMade.end(), name) != kMade.end() ||
         (name.starts_with("journal") && name.ends_with(".jsonl"));
}

absl::StatusOr<std::vector<std::string>> OthersInPackFolder(const OwnedFolder& dataset) {
  ASSIGN_OR_RETURN(std::vector<std::string> names, dataset.List(kFolder));
  std::erase_if(names, IsMadeByPack);
  for (std::string& name : names) name = absl::StrCat(std::string(kFolder), "/", name);
  return names;
}

absl::Status RemovePackFolder(const OwnedFolder& dataset) {
  ASSIGN_OR_RETURN(std::vector<std::string> names, dataset.List(kFolder));
  std::stable_partition(names.begin(), names.end(),
                        [](const std::string& name) { return name != "lock"; });
  for (const std::string& name : names) {
    const std::string path = absl::StrCat(std::string(kFolder), "/", name);
    if (!IsMadeByPack(name) || !OwnedFolder::IsName(path)) continue;
    RETURN_IF_ERROR(name == "stage" ? dataset.RemoveTree(path) : dataset.RemoveFile(path));
  }
  return dataset.RemoveEmptyFolder(kFolder);
}

}  // namespace shardpack

#include "converters/listing/hidden_entries.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "converters/listing/first_few.h"
#include "formats/io/file.h"

namespace shardpack {
namespace {

constexpr size_t kNamedFolders = 3;

}  // namespace

bool IsHiddenFolder(std::string_view name) { return name.starts_with('.') || name == "__MACOSX"; }

bool IsHiddenFile(std::string_view name) { return name.starts_with("._"); }

std::string_view HiddenFolderOf(std::string_view folder) {
  for (size_t begin = 0; begin < folder.size();) {
    const size_t end = std::min(folder.find('/', begin), folder.size());
    if (IsHiddenFolder(folder.substr(begin, end - begin))) return folder.substr(0, end);
    begin = end + 1;
  }
  return "";
}

void HiddenEntries::AddFile(std::string path) {
  if (facts_.files++ == 0 || path < facts_.first_file) facts_.first_file = std::move(path);
}

void HiddenEntries::Add(const HiddenEntries& other) {
  facts_.folders.insert(other.facts_.folders.begin(), other.facts_.folders.end());
  if (other.facts_.files == 0) return;
  if (facts_.files == 0 || other.facts_.first_file < facts_.first_file)
    facts_.first_file = other.facts_.first_file;
  facts_.files += other.facts_.files;
}

void HiddenEntries::Report(Listing& listing) const {
  std::vector<std::string> parts;
  if (!facts_.folders.empty()) {
    parts.push_back(absl::StrCat(facts_.folders.size() == 1 ? "the folder " : "the folders ",
                                 FirstFew(facts_.folders, kNamedFolders)));
  }
  if (facts_.files > 0) {
    listing.ignored[std::string(kHiddenFiles)] += facts_.files;
    parts.push_back(absl::StrCat(facts_.files, facts_.files == 1 ? " file" : " files",
                                 " of macOS (", facts_.files == 1 ? "" : "the first is ",
                                 EscapeForTerminal(facts_.first_file), ")"));
  }
  if (parts.empty()) return;
  listing.notes.push_back(absl::StrCat("left out as hidden: ", absl::StrJoin(parts, "; "),
                                       "; give them other names to pack them"));
}

}  // namespace shardpack

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
  if (files_++ == 0 || path < first_file_) first_file_ = std::move(path);
}

void HiddenEntries::Add(const HiddenEntries& other) {
  folders_.insert(other.folders_.begin(), other.folders_.end());
  if (other.files_ == 0) return;
  if (files_ == 0 || other.first_file_ < first_file_) first_file_ = other.first_file_;
  files_ += other.files_;
}

void HiddenEntries::Report(Listing& listing) const {
  std::vector<std::string> parts;
  if (!folders_.empty()) {
    parts.push_back(absl::StrCat(folders_.size() == 1 ? "the folder " : "the folders ",
                                 FirstFew(folders_, kNamedFolders)));
  }
  if (files_ > 0) {
    listing.ignored[std::string(kHiddenFiles)] += files_;
    parts.push_back(absl::StrCat(files_, files_ == 1 ? " file" : " files", " of macOS (",
                                 files_ == 1 ? "" : "the first is ", EscapeForTerminal(first_file_),
                                 ")"));
  }
  if (parts.empty()) return;
  listing.notes.push_back(absl::StrCat("left out as hidden: ", absl::StrJoin(parts, "; "),
                                       "; give them other names to pack them"));
}

}  // namespace shardpack

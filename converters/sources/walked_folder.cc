#include "converters/sources/walked_folder.h"

#include <dirent.h>

#include <algorithm>
#include <map>
#include <span>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "converters/listing/first_few.h"
#include "formats/io/file.h"
#include "formats/io/shell_quoted.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr size_t kNamedLinks = 3;

const WalkedFolder* PackedAbove(const WalkedFolder* folder) {
  while (folder != nullptr && !folder->packed) folder = folder->parent;
  return folder;
}

// Turns a folder that could not be listed into an entry of its parent, in sorted position.
void AddLostFolders(std::span<LostFolder> lost_folders) {
  for (LostFolder& lost : lost_folders) {
    WalkedFolder& parent = *lost.folder->parent;
    const size_t slash = lost.folder->path.rfind('/');
    const std::string name =
        slash == std::string::npos ? lost.folder->path : lost.folder->path.substr(slash + 1);
    WalkedFile entry{.inode_or_bytes = 0,
                     .mtime_ns = 0,
                     .name_at = static_cast<uint32_t>(parent.names.size()),
                     .name_bytes = static_cast<uint16_t>(name.size()),
                     .type = DT_DIR,
                     .outcome = static_cast<uint8_t>(lost.reason)};
    parent.names.append(name).push_back('\0');
    const auto at = std::upper_bound(
        parent.entries.begin(), parent.entries.end(), entry,
        [&](const WalkedFile& a, const WalkedFile& b) { return parent.Name(a) < parent.Name(b); });
    parent.entries.insert(at, entry);
    parent.details.emplace_back(entry.name_at,
                                std::move(lost.detail));  // the largest name_at: stays sorted
  }
}

void AppendFolder(WalkedFolder& folder, Listing& listing) {
  const uint32_t number = static_cast<uint32_t>(listing.folders.size());
  for (const WalkedFile& entry : folder.entries) {
    if (entry.outcome != WalkedFile::kUsable) {
      const auto reason = static_cast<SkipReason>(entry.outcome);
      const auto detail = std::lower_bound(folder.details.begin(), folder.details.end(),
                                           std::pair(entry.name_at, std::string()));
      const bool found = detail != folder.details.end() && detail->first == entry.name_at;
      listing.skips.push_back({listing.name_ends.size(), reason, found ? detail->second : ""});
    }
    listing.names.append(folder.Name(entry));
    listing.name_ends.push_back(listing.names.size());
  }
  folder.names = std::string();  // free it before the next columns grow, to limit the peak
  for (const WalkedFile& entry : folder.entries) {
    listing.folder.push_back(number);
    listing.bytes.push_back(entry.inode_or_bytes);
    listing.mtime_ns.push_back(entry.mtime_ns);
  }
  folder.entries = std::vector<WalkedFile>();
  listing.folders.push_back(folder.path);
}

// Folders written by pack are not sources of images: OUT may lie here, spelled differently.
absl::Status LeaveOutPacked(std::deque<WalkedFolder>& folders,
                            std::vector<LostFolder>& lost_folders, const std::string& root_path,
                            Listing& listing) {
  for (WalkedFolder& folder : folders) {
    const WalkedFolder* packed = PackedAbove(&folder);
    if (packed == nullptr) continue;
    if (packed->parent == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("source ", EscapeForTerminal(root_path),
                       " holds a build or an extraction of pack that has not ended (.pack or "
                       ".pack-extract): end it with the same command, or give the folder of the "
                       "images"));
    }
    if (packed == &folder) {
      listing.warnings.push_back(absl::StrCat(
          "left out ", EscapeForTerminal(folder.path), ", which pack has written; --exclude ",
          EscapeForTerminal(absl::StrCat("/", folder.path, "/")),
          " leaves it out without this line"));
    }
    folder.entries.clear();
    folder.ignored.clear();
    folder.hidden = HiddenEntries();
  }
  std::erase_if(lost_folders,
                [](const LostFolder& lost) { return PackedAbove(lost.folder) != nullptr; });
  std::sort(listing.warnings.begin(), listing.warnings.end());
  return absl::OkStatus();
}

bool HoldsImages(const std::vector<WalkedFolder*>& sorted, const WalkedFolder& top) {
  const auto any = [](const WalkedFolder& folder) {
    return std::any_of(folder.entries.begin(), folder.entries.end(), [](const WalkedFile& entry) {
      return entry.outcome == WalkedFile::kUsable;
    });
  };
  if (any(top)) return true;
  const std::string below = absl::StrCat(top.path, "/");
  auto at = std::lower_bound(
      sorted.begin(), sorted.end(), below,
      [](const WalkedFolder* folder, const std::string& path) { return folder->path < path; });
  for (; at != sorted.end() && (*at)->path.starts_with(below); ++at) {
    if (any(**at)) return true;
  }
  return false;
}

// A link to a folder that is also listed itself: its images are there twice, perhaps under two
// classes.
void WarnOfFoldersTwice(const std::vector<WalkedFolder*>& sorted, Listing& listing) {
  if (std::all_of(sorted.begin(), sorted.end(),
                  [](const WalkedFolder* folder) { return folder->link_target.empty(); })) {
    return;
  }
  std::map<std::string, std::vector<const WalkedFolder*>> by_real;
  std::map<const WalkedFolder*, std::string> behind_link;  // the real paths of these
  for (const WalkedFolder* folder : sorted) {              // parents first
    std::string real = folder->link_target;
    const auto parent = behind_link.find(folder->parent);
    if (real.empty() && parent != behind_link.end())
      real = parent->second + folder->path.substr(folder->parent->path.size());
    if (!real.empty()) behind_link[folder] = real;
    by_real[real.empty() ? folder->path : real].push_back(folder);
  }
  std::vector<std::string> shown;
  const WalkedFolder* first = nullptr;
  for (const WalkedFolder* folder : sorted) {
    if (folder->link_target.empty()) continue;
    const std::vector<const WalkedFolder*>& same = by_real[folder->link_target];
    // Of links to one folder that is not listed itself, the first one counts as that folder.
    const auto other = std::find_if(same.begin(), same.end(), [&](const WalkedFolder* each) {
      return each != folder && (each->link_target.empty() || each->path < folder->path);
    });
    if (other == same.end() || !HoldsImages(sorted, *folder)) continue;
    if (first == nullptr) first = folder;
    shown.push_back(absl::StrCat(folder->path, " (to ", (*other)->path, ")"));
  }
  if (shown.empty()) return;
  listing.warnings.push_back(
      absl::StrCat(shown.size() == 1
                       ? "a link leads to a folder that is packed as well, so that its images come"
                       : "links lead to folders that are packed as well, so that their images come",
                   " twice, under both names: ", FirstFew(shown, kNamedLinks), "; --exclude ",
                   ShellQuoted(absl::StrCat("/", first->path, "/")), " leaves ",
                   shown.size() == 1 ? "the link out" : "the first link out"));
}

}  // namespace

bool IsUnread(const LostFolder& lost) {
  return lost.reason != SkipReason::kSymlinkLoop && PackedAbove(lost.folder) == nullptr;
}

absl::StatusOr<FolderWalk> JoinFolders(WalkedFolders& walked, const std::string& root_path) {
  std::deque<WalkedFolder>& folders = walked.folders;
  std::vector<LostFolder>& lost_folders = walked.lost;
  FolderWalk walk;
  Listing& listing = walk.listing;
  RETURN_IF_ERROR(LeaveOutPacked(folders, lost_folders, root_path, listing));
  AddLostFolders(lost_folders);
  for (const LostFolder& lost : lost_folders) {
    if (IsUnread(lost)) listing.unread_folders.push_back({lost.folder->path, lost.reason});
  }
  std::sort(listing.unread_folders.begin(), listing.unread_folders.end(),
            [](const UnreadFolder& a, const UnreadFolder& b) { return a.path < b.path; });
  std::vector<WalkedFolder*> sorted;
  sorted.reserve(folders.size());
  uint64_t rows = 0, name_bytes = 0;
  for (WalkedFolder& folder : folders) {
    sorted.push_back(&folder);
    rows += folder.entries.size();
    for (const WalkedFile& entry : folder.entries) name_bytes += entry.name_bytes;
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const WalkedFolder* a, const WalkedFolder* b) { return a->path < b->path; });

  WarnOfFoldersTwice(sorted, listing);
  listing.root = root_path;
  listing.names.reserve(name_bytes);
  listing.name_ends.reserve(rows);
  listing.folder.reserve(rows);
  listing.bytes.reserve(rows);
  listing.mtime_ns.reserve(rows);
  std::vector<const WalkedFolder*> lost;
  for (const LostFolder& folder : lost_folders) lost.push_back(folder.folder);
  std::sort(lost.begin(), lost.end());
  SidecarsInOtherCase other_case;
  HiddenEntries hidden;
  for (WalkedFolder* folder : sorted) {
    for (const auto& [extension, count] : folder->ignored) listing.ignored[extension] += count;
    other_case.Add(folder->other_case);
    hidden.Add(folder->hidden);
    if (!folder->entries.empty()) {
      AppendFolder(*folder, listing);
    } else if (!std::binary_search(lost.begin(), lost.end(), folder) &&
               PackedAbove(folder) == nullptr) {
      walk.empty_folders.push_back(folder->path);
    }
  }
  other_case.Warn(listing);
  hidden.Report(listing);
  for (std::string& line : walked.unmatched) listing.warnings.push_back(std::move(line));
  return walk;
}

}  // namespace shardpack

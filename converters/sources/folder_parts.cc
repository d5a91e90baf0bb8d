#include "converters/sources/folder_parts.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "converters/listing/hidden_entries.h"
#include "converters/listing/path_filter.h"
#include "converters/planning/plan_bytes.h"
#include "converters/sources/folder_access.h"
#include "converters/sources/folder_listing.h"
#include "converters/sources/walked_folder.h"
#include "formats/io/error_facts.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/io/list_folder.h"
#include "formats/io/relative_path.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr size_t kEnoughFolders = 1000, kMostWitnesses = 16;
constexpr std::string_view kPartMagic = "SPKLIST3";
constexpr size_t kDigestBytes = 16;

std::string Below(const std::string& folder, std::string_view name) {
  return folder.empty() ? std::string(name) : absl::StrCat(folder, "/", std::string(name));
}

// The folders in it that a walk enters, as far as it can be read: those that are not found here are
// listed with the part that it belongs to.
std::vector<std::string> FoldersIn(int root, const std::string& path, const PathFilter& filter) {
  std::vector<std::string> found;
  Descriptor fd(OpenBelow(root, path, O_RDONLY | O_DIRECTORY | (path.empty() ? 0 : O_NOFOLLOW)));
  const int folder = fd.get();
  struct stat facts;
  // Of two links one is its name, the other its dot: no folder is below. It may have many files.
  if (!fd.ok() || ::fstat(folder, &facts) != 0 || facts.st_nlink == 2) return found;
  (void)ListOpenFolder(fd.Release(), path, [&](const dirent& entry) {
    const std::string_view name = entry.d_name;
    bool is_folder = entry.d_type == DT_DIR;
    if (entry.d_type == DT_UNKNOWN) {
      is_folder = ::fstatat(folder, entry.d_name, &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
                  S_ISDIR(facts.st_mode);
    }
    if (!is_folder || IsHiddenFolder(name)) return true;
    std::string below = Below(path, name);
    if (!filter.ExcludesFolder(below)) found.push_back(std::move(below));
    return true;
  });
  return found;
}

std::string_view RawBytes(const std::vector<WalkedFile>& entries) {
  return {reinterpret_cast<const char*>(entries.data()), entries.size() * sizeof(WalkedFile)};
}

void WriteFolder(const WalkedFolder& folder, PlanBytesWriter& out) {
  out.Text(folder.path);
  out.Text(folder.link_target);
  out.Number(folder.packed);
  out.Text(folder.names);
  out.Text(RawBytes(folder.entries));
  out.Number(folder.details.size());
  for (const auto& [name_at, detail] : folder.details) {
    out.Number(name_at);
    out.Text(detail);
  }
  out.Number(folder.ignored.size());
  for (const auto& [extension, count] : folder.ignored) {
    out.Text(extension);
    out.Number(count);
  }
  const HiddenEntries::Facts& hidden = folder.hidden.facts();
  out.Texts({hidden.folders.begin(), hidden.folders.end()});
  out.Number(hidden.files);
  out.Text(hidden.first_file);
  const SidecarsInOtherCase::Facts& other_case = folder.other_case.facts();
  out.Number(other_case.count);
  out.Text(other_case.first);
  out.Text(other_case.offer);
}

// Nothing that is read may lie outside of `names`, or lead out of the folder.
bool IsGood(const WalkedFolder& folder) {
  std::string_view before;
  for (const WalkedFile& entry : folder.entries) {
    const uint64_t end = uint64_t{entry.name_at} + entry.name_bytes;
    if (end >= folder.names.size() || folder.names[end] != '\0') return false;
    const std::string_view name = folder.Name(entry);
    const bool known =
        entry.outcome == WalkedFile::kUsable || entry.outcome < kSkipReasonNames.size();
    if (!known || !IsPlainName(name) || (!before.empty() && name <= before)) return false;
    before = name;
  }
  return std::is_sorted(folder.details.begin(), folder.details.end());
}

bool ReadFolder(PlanBytesReader& in, WalkedFolder& folder) {
  folder.path = std::string(in.Text());
  folder.link_target = std::string(in.Text());
  folder.packed = in.Flag();
  folder.names = std::string(in.Text());
  const std::string_view raw = in.Text();
  folder.entries.resize(raw.size() / sizeof(WalkedFile));
  in.Check(folder.entries.size() * sizeof(WalkedFile) == raw.size());
  // A folder without files has none, and memcpy takes no null pointer.
  if (in.ok() && !raw.empty())
    std::memcpy(static_cast<void*>(folder.entries.data()), raw.data(), raw.size());
  for (uint64_t left = in.Count(16); left > 0 && in.ok(); --left) {
    const auto name_at = static_cast<uint32_t>(in.Bounded(folder.names.size()));
    folder.details.emplace_back(name_at, std::string(in.Text()));
  }
  for (uint64_t left = in.Count(16); left > 0 && in.ok(); --left) {
    std::string extension(in.Text());
    folder.ignored[std::move(extension)] = in.Number();
  }
  HiddenEntries::Facts hidden;
  for (std::string& path : in.Texts()) hidden.folders.insert(std::move(path));
  hidden.files = in.Number();
  hidden.first_file = std::string(in.Text());
  folder.hidden = HiddenEntries(std::move(hidden));
  const uint64_t count = in.Number();
  std::string first(in.Text());
  folder.other_case = SidecarsInOtherCase({count, std::move(first), std::string(in.Text())});
  const bool inside = folder.path.empty() || IsPlainPath(folder.path);
  return in.ok() && inside && IsGood(folder);
}

absl::Status Damaged() { return absl::DataLossError("does not match its own hash"); }

// What a part begins with.
std::string HeadOf(const FolderDivision& division, uint32_t part) {
  PlanBytesWriter out;
  out.Text(kPartMagic);
  out.Number(division.mark.low);
  out.Number(division.mark.high);
  out.Number(part);
  return out.Take();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> FindWitnesses(const SourceFolder& root) {
  std::vector<std::string> found, hidden;
  const auto take = [&](const dirent& entry) {
    const std::string_view name = entry.d_name;
    std::vector<std::string>& names = IsHiddenFolder(name) ? hidden : found;
    if (names.size() < kMostWitnesses) names.emplace_back(name);
    return found.size() < kMostWitnesses;
  };
  RETURN_IF_ERROR(ListOpenFolder(OpenBelow(root.descriptor.get(), "", O_RDONLY | O_DIRECTORY),
                                 root.path, take));
  return found.empty() ? hidden : found;
}

absl::StatusOr<bool> AnyWitness(const SourceFolder& root, std::span<const std::string> witnesses) {
  for (const std::string& name : witnesses) {
    struct stat facts;
    if (::fstatat(root.descriptor.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0)
      return true;
    if (errno != ENOENT) return IoStatus("look at", absl::StrCat(root.path, "/", name), errno);
  }
  return false;
}

std::vector<FolderPart> FindFolderParts(const SourceFolder& root,
                                        const FolderSourceOptions& options,
                                        const std::atomic<int>& stop, size_t most_parts) {
  const PathFilter filter(options.extensions, options.any_extension, options.include,
                          options.exclude);
  std::vector<std::string> folders, level = {""};
  while (!level.empty() && folders.size() + level.size() < kEnoughFolders) {
    std::vector<std::string> next;
    for (std::string& path : level) {
      if (stop != 0) return {};
      std::vector<std::string> below = FoldersIn(root.descriptor.get(), path, filter);
      std::move(below.begin(), below.end(), std::back_inserter(next));
      folders.push_back(std::move(path));
    }
    level = std::move(next);
  }
  std::move(level.begin(), level.end(), std::back_inserter(folders));
  std::sort(folders.begin(), folders.end());
  std::vector<FolderPart> parts(std::min(folders.size(), most_parts));
  for (size_t n = 0; n < folders.size(); ++n)
    parts[n * parts.size() / folders.size()].push_back(std::move(folders[n]));
  return parts;
}

FolderPartLister::FolderPartLister(const SourceFolder& root, const FolderSourceOptions& options,
                                   const FolderDivision& division, IoPool& pool,
                                   std::atomic<uint64_t>& listed, const std::atomic<int>& stop)
    : root_(root),
      options_(options),
      division_(division),
      pool_(pool),
      listed_(listed),
      stop_(stop) {
  for (const FolderPart& part : division.parts) folders_.insert(part.begin(), part.end());
}

absl::StatusOr<std::string> FolderPartLister::List(uint32_t part,
                                                   std::vector<UnreadFolder>* unread) const {
  WalkedFolders walked;
  const PartWalk walk{division_.parts[part], &folders_, &stop_};
  RETURN_IF_ERROR(
      WalkPart(root_.descriptor.get(), root_.path, options_, walk, pool_, listed_, walked));
  PlanBytesWriter out;
  out.Texts(walked.unmatched);
  out.Number(walked.folders.size());
  for (const WalkedFolder& folder : walked.folders) WriteFolder(folder, out);
  out.Number(walked.lost.size());
  for (const LostFolder& lost : walked.lost) {
    out.Text(lost.folder->path);
    out.Number(static_cast<uint64_t>(lost.reason));
    out.Text(lost.detail);
    if (unread != nullptr && IsUnread(lost)) unread->push_back({lost.folder->path, lost.reason});
  }
  std::string bytes = HeadOf(division_, part) + out.Take();
  PlanBytesWriter footer;
  const Digest digest = Xxh3_128(AsBytes(bytes));
  footer.Number(digest.low);
  footer.Number(digest.high);
  return bytes + footer.Take();
}

absl::Status CheckFolderPart(std::string_view head, const FolderDivision& division, uint32_t part) {
  const std::string wanted = HeadOf(division, part);
  if (head.starts_with(wanted)) return absl::OkStatus();
  PlanBytesReader in(head);
  const std::string_view magic = in.Text();
  if (magic != kPartMagic && magic.starts_with("SPKLIST"))
    return absl::InvalidArgumentError("was made by another version of pack");
  return absl::DataLossError("is not a part of this list");
}

absl::Status NotThisPart(const absl::Status& why, const std::string& file,
                         const std::string& list_again) {
  return Reworded(why, absl::StrCat(EscapeForTerminal(file), " ", std::string(why.message()),
                                    "; remove that file, and run\n  ", list_again));
}

FolderParts::FolderParts(const FolderDivision& division)
    : division_(division), walked_(std::make_unique<WalkedFolders>()) {}
FolderParts::~FolderParts() = default;

absl::Status FolderParts::Add(uint32_t part, std::string_view bytes) {
  if (bytes.size() < kFolderPartHeadBytes + kDigestBytes) return Damaged();
  const std::string_view body = bytes.substr(0, bytes.size() - kDigestBytes);
  const Digest digest = Xxh3_128(AsBytes(body));
  PlanBytesReader footer(bytes.substr(body.size()));
  const uint64_t low = footer.Number();
  if (low != digest.low || footer.Number() != digest.high) return Damaged();
  RETURN_IF_ERROR(CheckFolderPart(body, division_, part));
  PlanBytesReader in(body.substr(kFolderPartHeadBytes));
  std::vector<std::string> unmatched = in.Texts();
  if (any_) {  // by no part: each says what it has not seen
    std::erase_if(walked_->unmatched, [&](const std::string& each) {
      return std::find(unmatched.begin(), unmatched.end(), each) == unmatched.end();
    });
  } else {
    walked_->unmatched = std::move(unmatched);
  }
  any_ = true;
  const absl::Status other = absl::DataLossError("is not a list that pack has written");
  absl::flat_hash_map<std::string_view, WalkedFolder*> by_path;
  for (uint64_t left = in.Count(64); left > 0; --left) {
    WalkedFolder& folder = walked_->folders.emplace_back();
    if (!ReadFolder(in, folder)) return other;
    by_path[folder.path] = &folder;
  }
  for (uint64_t left = in.Count(24); left > 0; --left) {
    const auto lost = by_path.find(in.Text());
    const auto reason = static_cast<SkipReason>(in.Bounded(kSkipReasonNames.size() - 1));
    if (lost == by_path.end() || lost->first.empty()) return other;
    walked_->lost.push_back({lost->second, reason, std::string(in.Text())});
  }
  if (!in.ok() || !in.at_end()) return other;
  for (const std::string& path : division_.parts[part]) {
    if (by_path.contains(path)) continue;
    return absl::DataLossError(
        absl::StrCat("does not hold the folder ", path.empty() ? "." : EscapeForTerminal(path)));
  }
  return absl::OkStatus();
}

absl::StatusOr<FolderWalk> FolderParts::Join(const std::string& root_path) && {
  absl::flat_hash_map<std::string_view, WalkedFolder*> by_path;
  for (WalkedFolder& folder : walked_->folders) {
    if (!by_path.emplace(folder.path, &folder).second)
      return absl::DataLossError(
          absl::StrCat("two lists hold the folder ", EscapeForTerminal(folder.path)));
  }
  for (WalkedFolder& folder : walked_->folders) {
    if (folder.path.empty()) continue;
    const auto parent = by_path.find(FolderAbove(folder.path));
    if (parent == by_path.end()) {
      return absl::DataLossError(
          absl::StrCat("no list holds the folder above ", EscapeForTerminal(folder.path)));
    }
    folder.parent = parent->second;
  }
  by_path.clear();
  return JoinFolders(*walked_, root_path);
}

}  // namespace shardpack

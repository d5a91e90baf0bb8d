#include "converters/sources/folder_parts.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "converters/listing/hidden_entries.h"
#include "converters/listing/path_filter.h"
#include "converters/planning/plan_bytes.h"
#include "converters/sources/folder_access.h"
#include "converters/sources/folder_listing.h"
#include "converters/sources/walked_folder.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/io/relative_path.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr size_t kEnoughParts = 1000;
constexpr std::string_view kPartMagic = "SPKLIST1";
constexpr size_t kDigestBytes = 16;

std::string Below(const std::string& folder, std::string_view name) {
  return folder.empty() ? std::string(name) : absl::StrCat(folder, "/", std::string(name));
}

struct FolderCloser {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

// The folders in it that a walk enters; empty also where it cannot be read: whoever lists it says
// why.
std::vector<std::string> FoldersIn(int root, const std::string& path, const PathFilter& filter) {
  std::vector<std::string> found;
  Descriptor fd(OpenBelow(root, path, O_RDONLY | O_DIRECTORY | (path.empty() ? 0 : O_NOFOLLOW)));
  struct stat facts;
  // Of two links one is its name, the other its dot: no folder is below. It may have many files.
  if (!fd.ok() || ::fstat(fd.get(), &facts) != 0 || facts.st_nlink == 2) return found;
  const std::unique_ptr<DIR, FolderCloser> folder(::fdopendir(fd.get()));
  if (folder == nullptr) return found;
  (void)fd.Release();
  while (const dirent* entry = ::readdir(folder.get())) {
    const std::string_view name = entry->d_name;
    bool is_folder = entry->d_type == DT_DIR;
    if (entry->d_type == DT_UNKNOWN) {
      is_folder =
          ::fstatat(::dirfd(folder.get()), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
          S_ISDIR(facts.st_mode);
    }
    if (!is_folder || name == "." || name == ".." || IsHiddenFolder(name)) continue;
    std::string below = Below(path, name);
    if (!filter.ExcludesFolder(below)) found.push_back(std::move(below));
  }
  return found;
}

std::string_view RawBytes(const std::vector<WalkedFile>& entries) {
  return {reinterpret_cast<const char*>(entries.data()), entries.size() * sizeof(WalkedFile)};
}

void WriteFolder(const WalkedFolder& folder, PlanBytesWriter& out) {
  out.Text(folder.path);
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
    if (!known || !IsPlainPath(name) || name.find('/') != name.npos ||
        (!before.empty() && name <= before))
      return false;
    before = name;
  }
  return std::is_sorted(folder.details.begin(), folder.details.end());
}

bool ReadFolder(PlanBytesReader& in, WalkedFolder& folder) {
  folder.path = std::string(in.Text());
  folder.packed = in.Flag();
  folder.names = std::string(in.Text());
  const std::string_view raw = in.Text();
  folder.entries.resize(raw.size() / sizeof(WalkedFile));
  in.Check(folder.entries.size() * sizeof(WalkedFile) == raw.size());
  if (in.ok()) std::memcpy(static_cast<void*>(folder.entries.data()), raw.data(), raw.size());
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

std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

}  // namespace

std::vector<FolderPart> FindFolderParts(const SourceFolder& root,
                                        const FolderSourceOptions& options) {
  const PathFilter filter(options.extensions, options.any_extension, options.include,
                          options.exclude);
  std::vector<FolderPart> parts;
  std::vector<std::string> level = {""};
  while (!level.empty() && parts.size() + level.size() < kEnoughParts) {
    std::vector<std::string> next;
    for (const std::string& path : level) {
      std::vector<std::string> below = FoldersIn(root.descriptor.get(), path, filter);
      parts.push_back({path, below.empty()});
      std::move(below.begin(), below.end(), std::back_inserter(next));
    }
    level = std::move(next);
  }
  for (const std::string& path : level) parts.push_back({path, true});
  std::sort(parts.begin(), parts.end(),
            [](const FolderPart& a, const FolderPart& b) { return a.path < b.path; });
  return parts;
}

absl::StatusOr<std::string> ListFolderPart(const SourceFolder& root,
                                           const FolderSourceOptions& options,
                                           const FolderPart& part, IoPool& pool,
                                           std::atomic<uint64_t>& listed) {
  WalkedFolders walked;
  RETURN_IF_ERROR(WalkPart(root.descriptor.get(), root.path, options, part, pool, listed, walked));
  PlanBytesWriter out;
  out.Text(kPartMagic);
  out.Texts(walked.unmatched);
  out.Number(walked.folders.size());
  for (const WalkedFolder& folder : walked.folders) WriteFolder(folder, out);
  out.Number(walked.lost.size());
  for (const LostFolder& lost : walked.lost) {
    out.Text(lost.folder->path);
    out.Number(static_cast<uint64_t>(lost.reason));
    out.Text(lost.detail);
  }
  std::string bytes = out.Take();
  PlanBytesWriter footer;
  const Digest digest = Xxh3_128(AsBytes(bytes));
  footer.Number(digest.low);
  footer.Number(digest.high);
  return bytes + footer.Take();
}

FolderParts::FolderParts() : walked_(std::make_unique<WalkedFolders>()) {}
FolderParts::~FolderParts() = default;

absl::Status FolderParts::Add(std::string_view bytes) {
  if (bytes.size() < kDigestBytes) return Damaged();
  const std::string_view body = bytes.substr(0, bytes.size() - kDigestBytes);
  const Digest digest = Xxh3_128(AsBytes(body));
  PlanBytesReader footer(bytes.substr(body.size()));
  const uint64_t low = footer.Number();
  if (low != digest.low || footer.Number() != digest.high) return Damaged();
  PlanBytesReader in(body);
  if (in.Text() != kPartMagic)
    return absl::InvalidArgumentError("is no list of pack, or one of another version");
  std::vector<std::string> unmatched = in.Texts();
  if (any_) {  // by no part: each says what it has not seen
    std::erase_if(walked_->unmatched, [&](const std::string& each) {
      return std::find(unmatched.begin(), unmatched.end(), each) == unmatched.end();
    });
  } else {
    walked_->unmatched = std::move(unmatched);
  }
  any_ = true;
  const size_t first = walked_->folders.size();
  bool good = true;
  for (uint64_t left = in.Count(64); left > 0 && good; --left)
    good = ReadFolder(in, walked_->folders.emplace_back());
  for (uint64_t left = good ? in.Count(24) : 0; left > 0 && good; --left) {
    const std::string path(in.Text());
    const auto reason = static_cast<SkipReason>(in.Bounded(kSkipReasonNames.size() - 1));
    const auto lost =
        std::find_if(walked_->folders.begin() + static_cast<ptrdiff_t>(first),
                     walked_->folders.end(), [&](const auto& each) { return each.path == path; });
    good = in.ok() && lost != walked_->folders.end() && !path.empty();
    if (good) walked_->lost.push_back({&*lost, reason, std::string(in.Text())});
  }
  return good && in.ok() && in.at_end() ? absl::OkStatus()
                                        : absl::DataLossError("holds what no walk has found");
}

absl::StatusOr<FolderWalk> FolderParts::Join(const std::string& root_path) && {
  absl::flat_hash_map<std::string, WalkedFolder*> by_path;
  for (WalkedFolder& folder : walked_->folders) {
    if (!by_path.emplace(folder.path, &folder).second)
      return absl::DataLossError(
          absl::StrCat("two lists hold the folder ", EscapeForTerminal(folder.path)));
  }
  for (WalkedFolder& folder : walked_->folders) {
    if (folder.path.empty()) continue;
    const auto parent = by_path.find(ParentOf(folder.path));
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

#include "converters/publishing/replacement.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "converters/listing/first_few.h"
#include "converters/publishing/pack_folder.h"
#include "converters/publishing/shard_results.h"
#include "formats/io/exists.h"
#include "formats/io/file.h"
#include "formats/io/list_folder.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr size_t kNamed = 5, kListed = 1000;

std::string FolderOf(const std::string& name) { return name.substr(0, name.find('/')); }

// Adds the entries of the folder that are not in `names`, sorted by name.
absl::Status AddOthers(const std::string& dataset, const std::string& below,
                       const std::set<std::string>& names, const std::set<std::string>& folders,
                       std::vector<std::string>& others) {
  const std::string path = below.empty() ? dataset : absl::StrCat(dataset, "/", below);
  std::vector<std::string> entries;
  std::vector<std::string> inside;
  ASSIGN_OR_RETURN(const std::vector<std::string> listed, ListFolder(path));
  for (const std::string& entry : listed) {
    if (below.empty() && entry == kPackFolder) continue;
    const std::string name = below.empty() ? entry : absl::StrCat(below, "/", entry);
    struct stat facts = {};
    if (::lstat(absl::StrCat(path, "/", entry).c_str(), &facts) != 0 && !IsAboutThePath(errno))
      return IoStatus("look at", absl::StrCat(path, "/", entry), errno);
    const bool folder = S_ISDIR(facts.st_mode);
    if (below.empty() && folder && folders.contains(name)) {
      inside.push_back(name);
    } else if (folder || !names.contains(name)) {
      entries.push_back(name + (folder ? "/" : ""));
    }
  }
  for (const std::string& folder : inside) {
    RETURN_IF_ERROR(AddOthers(dataset, folder, names, folders, entries));
  }
  others.insert(others.end(), entries.begin(), entries.end());
  return absl::OkStatus();
}

// A file that is not as large as the manifest says may be somebody else's.
absl::Status CheckSizes(const std::string& dataset, const Manifest& manifest) {
  FirstLines lines;
  for (const FileEntry& file : manifest.files) {
    const std::string path = PathInDataset(dataset, file.name);
    struct stat facts;
    if (::stat(path.c_str(), &facts) != 0) {
      if (!IsAboutThePath(errno)) return IoStatus("look at", path, errno);
      continue;
    }
    const std::string name = EscapeForTerminal(file.name);
    if (!S_ISREG(facts.st_mode)) {
      lines.Add(absl::StrCat(name, " is not a file"));
    } else if (static_cast<uint64_t>(facts.st_size) != file.bytes) {
      lines.Add(
          absl::StrCat(name, " has ", facts.st_size, " bytes, the manifest says ", file.bytes));
    }
  }
  if (lines.count() == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      EscapeForTerminal(dataset), " holds what its manifest does not know:\n  ", lines.Text(),
      "\n--overwrite would remove it, and it may be somebody else's. Move it away and run again, "
      "or "
      "use another folder"));
}

// A few in a line, else one a line, so that all of them can be moved away at once.
std::string NameAll(const std::vector<std::string>& names) {
  if (names.size() <= kNamed) return FirstFew(names, kNamed);
  std::string text;
  for (const std::string& name : std::span(names).first(std::min(names.size(), kListed)))
    absl::StrAppend(&text, "\n  ", EscapeForTerminal(name));
  if (names.size() > kListed)
    absl::StrAppend(&text, "\n  and ", names.size() - kListed, " more, which `ls -A` shows");
  return absl::StrCat(names.size(), " files and folders:", text, "\n");
}

}  // namespace

absl::StatusOr<std::set<std::string>> ReadNames(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadWholeFile(path, kMaxNamesBytes);
  if (absl::IsNotFound(text.status())) return std::set<std::string>();
  if (!text.ok()) return text.status();
  return ParseNames(*text);
}

std::set<std::string> ParseNames(const std::string& text) {
  std::set<std::string> names;
  std::istringstream lines(text);
  for (std::string name; std::getline(lines, name);) {
    if (IsDatasetFileName(name)) names.insert(name);
  }
  return names;
}

bool IsNamesText(std::string_view text) {
  // After a power failure, all or part of a file that was not flushed may be zeros.
  text = text.substr(0, text.find('\0'));
  for (size_t end; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1)) {
    const std::string name(text.substr(0, end));
    if (!name.empty() && !IsDatasetFileName(name)) return false;
  }
  return text.empty() || IsDatasetFileName(std::string(text)) || text.ends_with('/');
}

std::string NamesText(const std::set<std::string>& names) {
  return absl::StrCat(absl::StrJoin(names, "\n"), "\n");
}

std::set<std::string> FilesOf(const Manifest& manifest) {
  std::set<std::string> names = {std::string(kManifestName)};
  for (const FileEntry& file : manifest.files) names.insert(file.name);
  return names;
}

absl::StatusOr<std::set<std::string>> MadeFiles(const std::string& dataset) {
  absl::StatusOr<Manifest> manifest = Manifest::Read(dataset);
  if (manifest.ok()) {
    RETURN_IF_ERROR(CheckSizes(dataset, *manifest));
    return FilesOf(*manifest);
  }
  return absl::IsNotFound(manifest.status()) ? NotedFiles(dataset) : manifest.status();
}

absl::StatusOr<std::set<std::string>> NotedFiles(const std::string& dataset) {
  JournalReader journals(absl::StrCat(dataset, "/", std::string(kPackFolder)));
  absl::StatusOr<std::vector<ShardResult>> lines = journals.ReadNew();
  if (absl::IsNotFound(lines.status())) lines.emplace();
  if (!lines.ok()) return lines.status();
  return NotedFiles(dataset, *lines, journals.pending());
}

absl::StatusOr<std::set<std::string>> NotedFiles(const std::string& dataset,
                                                 std::span<const ShardResult> lines,
                                                 std::span<const ShardResult> pending) {
  const auto in = [&](std::string_view name) {
    return absl::StrCat(dataset, "/", std::string(name));
  };
  ASSIGN_OR_RETURN(std::set<std::string> noted, ReadNames(in(kMadeExtrasName)));
  for (const ShardResult& line : lines) {
    for (const std::string& name : {line.file.name, line.index.name}) {
      if (IsDatasetFileName(name)) noted.insert(name);
    }
  }
  // A file that was put there by others since then has other bytes.
  for (const ShardResult& line : pending) {
    for (const FileEntry* entry : {&line.file, &line.index}) {
      if (!IsDatasetFileName(entry->name) || noted.contains(entry->name)) continue;
      ASSIGN_OR_RETURN(const bool same, Matches(in(entry->name), *entry));
      if (same) noted.insert(entry->name);
    }
  }
  return noted;
}

namespace {

// The first line, then pending line, that notes a file of this name: with the bytes that it has, or
// for finished ones, if `any_bytes`, with any.
absl::StatusOr<std::optional<ShardResult>> FindNoted(const std::string& dataset,
                                                     const std::string& name, bool any_bytes) {
  JournalReader journals(absl::StrCat(dataset, "/", std::string(kPackFolder)));
  absl::StatusOr<std::vector<ShardResult>> lines = journals.ReadNew();
  if (absl::IsNotFound(lines.status())) return std::nullopt;
  if (!lines.ok()) return lines.status();
  lines->insert(lines->end(), journals.pending().begin(), journals.pending().end());
  for (ShardResult& line : *lines) {
    for (const FileEntry* entry : {&line.file, &line.index}) {
      if (entry->name != name) continue;
      bool same = any_bytes && !line.pending;
      if (!same) {
        ASSIGN_OR_RETURN(same, Matches(absl::StrCat(dataset, "/", name), *entry));
      }
      if (same) return std::optional(std::move(line));
    }
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<bool> IsNoted(const std::string& dataset, const std::string& name) {
  ASSIGN_OR_RETURN(const auto line, FindNoted(dataset, name, /*any_bytes=*/false));
  return line.has_value();
}

absl::StatusOr<std::optional<uint32_t>> NotedShard(const std::string& dataset,
                                                   const std::string& name) {
  ASSIGN_OR_RETURN(const auto line, FindNoted(dataset, name, /*any_bytes=*/true));
  return line ? std::optional(line->shard) : std::nullopt;
}

absl::Status CheckHoldsOnly(const std::string& dataset, const std::set<std::string>& names,
                            std::string_view advice) {
  std::set<std::string> folders;
  for (const std::string& name : names) {
    if (name.find('/') != std::string::npos) folders.insert(FolderOf(name));
  }
  ASSIGN_OR_RETURN(const OwnedFolder folder, OwnedFolder::Open(dataset));
  ASSIGN_OR_RETURN(PackEntries entries, ListPackFolder(folder));
  std::vector<std::string> others = std::move(entries.others);
  RETURN_IF_ERROR(AddOthers(dataset, "", names, folders, others));
  if (others.empty()) return absl::OkStatus();
  std::sort(others.begin(), others.end());
  return absl::FailedPreconditionError(
      absl::StrCat(EscapeForTerminal(dataset), " holds what pack has not made: ", NameAll(others),
                   others.size() > kNamed ? "" : "; ", std::string(advice)));
}

// The manifest is removed first, so that the rest cannot be mistaken for a dataset.
absl::Status RemoveMade(const OwnedFolder& folder, const std::set<std::string>& names) {
  absl::Status status = folder.RemoveFile(kManifestName);
  std::set<std::string> folders;
  for (const std::string& name : names) {
    if (status.ok()) status = folder.RemoveFile(name);
    if (name.find('/') != std::string::npos) folders.insert(FolderOf(name));
  }
  for (const std::string& name : folders) {
    if (status.ok()) status = folder.RemoveEmptyFolder(name);
  }
  return status;
}

}  // namespace shardpack

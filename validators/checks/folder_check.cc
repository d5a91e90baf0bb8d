#include "validators/checks/folder_check.h"

#include <errno.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/io/file.h"
#include "formats/io/list_folder.h"
#include "validators/checks/field_read.h"

namespace shardpack {
namespace {

constexpr std::string_view kPackFolder = ".pack";

const FileEntry* FindEntry(const Manifest& manifest, std::string_view name) {
  const auto entry = std::lower_bound(
      manifest.files.begin(), manifest.files.end(), name,
      [](const FileEntry& file, std::string_view wanted) { return file.name < wanted; });
  return entry != manifest.files.end() && entry->name == name ? &*entry : nullptr;
}

bool IsFolderOfManifest(const Manifest& manifest, const std::string& name) {
  const std::string prefix = name + "/";
  const auto entry = std::lower_bound(
      manifest.files.begin(), manifest.files.end(), prefix,
      [](const FileEntry& file, const std::string& wanted) { return file.name < wanted; });
  return entry != manifest.files.end() && entry->name.starts_with(prefix);
}

// Follows links: the content counts, and it is hashed.
void CheckEntry(const std::string& root, const FileEntry& entry, FolderCheck& check,
                FindingSink& findings) {
  struct stat facts;
  if (::stat(PathInDataset(root, entry.name).c_str(), &facts) != 0) {
    const int error_number = errno;
    const bool gone = error_number == ENOENT || error_number == ENOTDIR;
    Finding finding =
        MakeFinding(gone ? FindingId::kFileMissing : FindingId::kReadError, entry.name);
    if (!gone) finding.detail = std::generic_category().message(error_number);
    return findings.Report(std::move(finding));
  }
  if (!S_ISREG(facts.st_mode)) {
    Finding finding = MakeFinding(FindingId::kFileMissing, entry.name);
    finding.detail = "a folder, device or pipe lies in its place";
    return findings.Report(std::move(finding));
  }
  check.present.insert(entry.name);
  if (static_cast<uint64_t>(facts.st_size) == entry.bytes) return;
  Finding finding = MakeFinding(FindingId::kFileSize, entry.name);
  finding.expected = absl::StrCat(entry.bytes);
  finding.actual = absl::StrCat(facts.st_size);
  findings.Report(std::move(finding));
}

// `prefix` is "" or the name of a folder in the manifest, with its slash.
void FindExtras(const std::string& root, const std::string& prefix, const Manifest& manifest,
                std::string_view lock_file, FindingSink& findings) {
  const absl::StatusOr<std::vector<std::string>> names = ListFolder(root + "/" + prefix);
  if (!names.ok()) {
    Finding finding = MakeFinding(FindingId::kReadError, prefix.empty() ? root : prefix);
    finding.detail =
        absl::StrCat("the folder cannot be listed: ", std::string(names.status().message()));
    findings.Report(std::move(finding));
    return;
  }
  for (const std::string& name : *names) {
    const std::string full = prefix + name;
    if (full == kManifestName || FindEntry(manifest, full) != nullptr) continue;
    if (!prefix.empty() && name == lock_file) continue;
    if (prefix.empty() && name == kPackFolder) {
      findings.Report(MakeFinding(FindingId::kLeftoverPackFolder, name));
    } else if (prefix.empty() && IsFolderOfManifest(manifest, name)) {
      FindExtras(root, full + "/", manifest, lock_file, findings);
    } else if (!manifest.indexed_in_place() || full.ends_with(kIndexSuffix)) {
      // Shards indexed in place may have any neighbours.
      findings.Report(MakeFinding(FindingId::kFileExtra, full));
    }
  }
}

}  // namespace

FolderCheck CheckFolder(const std::string& root, const Manifest& manifest, const Format* format,
                        FindingSink& findings) {
  FolderCheck check;
  for (const FileEntry& entry : manifest.files) CheckEntry(root, entry, check, findings);
  for (const ManifestShard& shard : manifest.shards) {
    if (shard.location.empty()) continue;
    CheckEntry(root, {shard.location, shard.bytes, shard.xxh3_128}, check, findings);
  }
  const std::string_view lock_file = format == nullptr ? "" : format->traits.lock_file;
  FindExtras(root, "", manifest, lock_file, findings);
  return check;
}

absl::Status CheckOtherFiles(const std::string& root, const Manifest& manifest,
                             const FolderCheck& folder, const CheckRun& run, uint64_t& bytes_read,
                             FindingSink& findings) {
  std::set<std::string> of_shards;
  for (const ManifestShard& shard : manifest.shards) {
    of_shards.insert(shard.index.name);
    of_shards.insert(manifest.DataFileOf(shard));
  }
  for (const FileEntry& entry : manifest.files) {
    if (of_shards.contains(entry.name) || !folder.present.contains(entry.name)) continue;
    absl::StatusOr<File> file = File::OpenRead(absl::StrCat(root, "/", entry.name));
    absl::StatusOr<uint64_t> size = file.ok() ? file->Size() : file.status();
    absl::StatusOr<Digest> digest = size.ok() ? HashFile(*file, *size, run) : size.status();
    if (absl::IsCancelled(digest.status())) return digest.status();
    if (digest.ok() && *digest == entry.xxh3_128) {
      bytes_read += *size;
      continue;
    }
    Finding finding =
        MakeFinding(digest.ok() ? FindingId::kFileHash : FindingId::kReadError, entry.name);
    if (digest.ok()) {
      bytes_read += *size;
      finding.expected = entry.xxh3_128.ToHex();
      finding.actual = digest->ToHex();
    } else {
      finding.detail = std::string(digest.status().message());
    }
    findings.Report(std::move(finding));
  }
  return absl::OkStatus();
}

}  // namespace shardpack

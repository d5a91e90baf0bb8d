// The constraints on a manifest's values, and values derived from them. The text form is in
// manifest.cc.
#include <algorithm>
#include <array>
#include <set>

#include "absl/strings/str_cat.h"
#include "formats/core/manifest.h"
#include "formats/core/manifest_defect.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

// Energon expects its files under these names (energon/flavors/webdataset/config.py).
constexpr std::string_view kEnergonFolder = ".nv-meta", kEnergonInfo = ".info.json";
constexpr size_t kMaxComponentBytes = 128;
constexpr size_t kMaxLocationBytes = 4096;  // PATH_MAX

bool IsComponent(std::string_view name) {
  if (name.empty() || name.size() > kMaxComponentBytes || name[0] == '.') return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

// Adds to `sum`; false on 64-bit overflow.
bool Add(uint64_t& sum, uint64_t more) { return !__builtin_add_overflow(sum, more, &sum); }

absl::Status CheckFiles(const Manifest& manifest) {
  const std::string* last = nullptr;
  for (const FileEntry& file : manifest.files) {
    if (!IsDatasetFileName(file.name) || file.name == kManifestName) {
      return RefuseManifest(absl::StrCat("files: not a name for a file of a dataset: ",
                                         EscapeForTerminal(file.name)));
    }
    if (last != nullptr && !(*last < file.name)) {
      return RefuseManifest(absl::StrCat("files: not sorted, or twice: ", file.name));
    }
    last = &file.name;
  }
  return absl::OkStatus();
}

// The entry with that name, or the first file in the folder with that name.
const FileEntry* FindFile(const Manifest& manifest, const std::string& name) {
  const auto from = [&](const std::string& first) {
    return std::lower_bound(
        manifest.files.begin(), manifest.files.end(), first,
        [](const FileEntry& file, const std::string& n) { return file.name < n; });
  };
  if (const auto file = from(name); file != manifest.files.end() && file->name == name)
    return &*file;
  const std::string folder = name + "/";
  const auto file = from(folder);
  return file != manifest.files.end() && file->name.starts_with(folder) ? &*file : nullptr;
}

// For a shard that is a folder: the file in it that has the shard's size and hash.
const FileEntry* FindShardFile(const Manifest& manifest, const ManifestShard& shard) {
  const FileEntry* file = FindFile(manifest, shard.name);
  if (file == nullptr || file->name == shard.name) return file;
  const std::string folder = shard.name + "/";
  const FileEntry* const end = manifest.files.data() + manifest.files.size();
  for (const FileEntry* each = file; each != end && each->name.starts_with(folder); ++each) {
    if (each->bytes == shard.bytes && each->xxh3_128 == shard.xxh3_128) return each;
  }
  return file;
}

bool IsSha256(std::string_view hex) {
  return hex.size() == 64 && hex.find_first_not_of("0123456789abcdef") == hex.npos;
}

// Packed shards are in the dataset's folder; only shards indexed in place may be elsewhere.
absl::Status CheckLocation(const Manifest& manifest, const ManifestShard& shard,
                           const FileEntry* file) {
  if (!manifest.indexed_in_place() || !IsShardLocation(shard.location)) {
    return RefuseManifest(absl::StrCat("shards: ", shard.name, " may not lie at ",
                                       EscapeForTerminal(shard.location)));
  }
  if (file != nullptr) {
    return RefuseManifest(absl::StrCat("shards: ", shard.name, " lies elsewhere, but is in files"));
  }
  return absl::OkStatus();
}

absl::Status CheckShard(const Manifest& manifest, const ManifestShard& shard) {
  if (!IsDatasetFileName(shard.name)) {
    return RefuseManifest(
        absl::StrCat("shards: not a name for a shard: ", EscapeForTerminal(shard.name)));
  }
  const FileEntry* file = FindShardFile(manifest, shard);
  if (!shard.location.empty()) {
    RETURN_IF_ERROR(CheckLocation(manifest, shard, file));
  } else if (file == nullptr || file->bytes != shard.bytes || file->xxh3_128 != shard.xxh3_128) {
    return RefuseManifest(
        absl::StrCat("shards: ", shard.name, " is not in files with this size and hash"));
  }
  file = FindFile(manifest, shard.index.name);
  if (!shard.index.name.ends_with(kIndexSuffix) || file == nullptr || *file != shard.index) {
    return RefuseManifest(absl::StrCat("shards: the index of ", shard.name,
                                       " is not in files with this size and hash"));
  }
  if (!shard.sha256.empty() && !IsSha256(shard.sha256)) {
    return RefuseManifest(absl::StrCat("shards: the sha256 of ", shard.name, " is not one"));
  }
  return absl::OkStatus();
}

absl::Status CheckShards(const Manifest& manifest) {
  std::map<std::string, uint64_t> records;  // of each split
  std::set<std::string_view> names;
  for (const ManifestShard& shard : manifest.shards) {
    RETURN_IF_ERROR(CheckShard(manifest, shard));
    if (!names.insert(shard.name).second || !names.insert(shard.index.name).second) {
      return RefuseManifest(absl::StrCat("shards: twice: ", shard.name));
    }
    if (!Add(records[shard.split], shard.records)) {
      return RefuseManifest("shards: the records do not fit 64 bits", ManifestDefect::kAccounting);
    }
  }
  // A split may have no shards, but every shard must name one of the splits.
  for (const auto& [split, count] : manifest.splits) {
    const uint64_t actual = records.count(split) != 0 ? records[split] : 0;
    if (actual != count) {
      return RefuseManifest(absl::StrCat("splits: ", EscapeForTerminal(split), " has ", count,
                                         " records, its shards have ", actual),
                            ManifestDefect::kAccounting);
    }
    records.erase(split);
  }
  if (!records.empty()) {
    return RefuseManifest(absl::StrCat("shards: a split that splits lacks: ",
                                       EscapeForTerminal(records.begin()->first)),
                          ManifestDefect::kAccounting);
  }
  return absl::OkStatus();
}

absl::Status CheckCounts(const Manifest& manifest) {
  const ManifestCounts& counts = manifest.counts;
  uint64_t sum = 0, records = 0;
  const bool fits = Add(sum, counts.packed) && Add(sum, counts.filtered) &&
                    Add(sum, counts.skipped) && Add(sum, counts.failed);
  if (!fits || sum != counts.seen) {
    return RefuseManifest(absl::StrCat("counts: seen ", counts.seen,
                                       ", but packed + filtered + skipped + "
                                       "failed is another sum"),
                          ManifestDefect::kAccounting);
  }
  for (const ManifestShard& shard : manifest.shards) {
    if (!Add(records, shard.records)) records = ~uint64_t{0};
  }
  if (records != counts.packed) {
    return RefuseManifest(
        absl::StrCat("counts: packed ", counts.packed, ", the shards hold ", records),
        ManifestDefect::kAccounting);
  }
  return absl::OkStatus();
}

// Prefixes the text with its length, so that different lists of texts never yield the same bytes.
void UpdateText(DigestStream& stream, std::string_view text) {
  const uint64_t bytes = text.size();
  stream.Update(AsBytes({reinterpret_cast<const char*>(&bytes), sizeof(bytes)}));
  stream.Update(AsBytes(text));
}

void UpdateNumbers(DigestStream& stream, std::initializer_list<uint64_t> numbers) {
  stream.Update(AsBytes({reinterpret_cast<const char*>(numbers.begin()), numbers.size() * 8}));
}

}  // namespace

absl::Status Manifest::Check() const {
  if (format.empty()) return RefuseManifest("format: empty");
  if (!origin.empty() && !indexed_in_place()) {
    return RefuseManifest(absl::StrCat("origin: expected ", std::string(kIndexedInPlaceOrigin),
                                       " or none, actual ", EscapeForTerminal(origin)));
  }
  if (!source_times.empty() && !ParseDigest(source_times))
    return RefuseManifest("source.times: not a digest");
  for (const auto& check : {CheckFiles, CheckShards, CheckCounts}) {
    RETURN_IF_ERROR(check(*this));
  }
  return absl::OkStatus();
}

Digest Manifest::Identity() const {
  DigestStream stream;
  UpdateText(stream, "shardpack dataset 1");
  UpdateText(stream, format);
  UpdateText(stream, layout);
  UpdateNumbers(stream, {classes.size()});
  for (const std::string& name : classes) UpdateText(stream, name);
  UpdateNumbers(stream, {shards.size()});
  for (const ManifestShard& shard : shards) {
    UpdateText(stream, shard.name);
    UpdateNumbers(stream, {shard.bytes, shard.xxh3_128.high, shard.xxh3_128.low});
  }
  return stream.Finish();
}

std::string Manifest::DataFileOf(const ManifestShard& shard) const {
  if (!shard.location.empty()) return shard.location;
  const FileEntry* file = FindShardFile(*this, shard);
  return file == nullptr ? shard.name : file->name;
}

bool IsShardLocation(std::string_view path) {
  if (path.empty() || path.size() > kMaxLocationBytes || path.find('\0') != path.npos) return false;
  bool climbing = path[0] != '/';
  if (!climbing) path.remove_prefix(1);
  for (;;) {
    const size_t slash = path.find('/');
    const std::string_view component = path.substr(0, slash);
    if (component.empty() || component == ".") return false;
    if (component == ".." && (!climbing || slash == path.npos)) return false;
    climbing = climbing && component == "..";
    if (slash == path.npos) return true;
    path.remove_prefix(slash + 1);
  }
}

std::string PathInDataset(const std::string& folder, const std::string& name) {
  return name.starts_with('/') ? name : absl::StrCat(folder, "/", name);
}

bool IsDatasetFileName(std::string_view name) {
  const size_t slash = name.find('/');
  if (slash == name.npos) return IsComponent(name);
  const std::string_view folder = name.substr(0, slash);
  const std::string_view file = name.substr(slash + 1);
  if (folder == kEnergonFolder) return file == kEnergonInfo || IsComponent(file);
  return IsComponent(folder) && IsComponent(file);
}

std::string IdentityText(const Digest& identity) { return absl::StrCat("xxh3:", identity.ToHex()); }

}  // namespace shardpack

#include "converters/indexing/find_shards.h"

#include <errno.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "converters/sources/damaged_manifest.h"
#include "converters/sources/shard_splits.h"
#include "formats/core/index_name.h"
#include "formats/core/manifest.h"
#include "formats/io/file.h"
#include "formats/io/list_folder.h"
#include "formats/io/relative_path.h"
#include "formats/io/same_file.h"
#include "formats/io/status_macros.h"
#include "readers/dataset/foreign_shard.h"

namespace shardpack {
namespace {

namespace fs = std::filesystem;

constexpr size_t kNamedOthers = 1000;
// Leaves room in a component of a manifest's names for a number and the index suffix.
constexpr size_t kMaxMadeNameBytes = 110;

// A shard's folder as the user spelled it, its resolved folder, and its name there.
struct Place {
  std::string shown_folder;
  fs::path folder;
  std::string name;
};

absl::StatusOr<Place> PlaceOf(const std::string& path) {
  std::error_code error;
  fs::path shard = WithoutSlashes(path);
  // "." and ".." are not names in their parent folder.
  if (shard.filename() == "." || shard.filename() == "..") shard = fs::canonical(shard, error);
  const fs::path parent = shard.has_parent_path() ? shard.parent_path() : fs::path(".");
  fs::path folder;
  if (!error) folder = fs::canonical(parent, error);
  if (error) return IoStatus("look at", path, error.value());
  return Place{parent.native(), std::move(folder), shard.filename().native()};
}

class Finder {
 public:
  Finder(std::span<const Format* const> formats, const FindShardsOptions& options)
      : formats_(formats), options_(options) {}

  absl::StatusOr<FoundShards> Find(std::span<const std::string> paths) {
    absl::Status status;
    for (const std::string& path : paths) {
      status = AddPath(path);
      if (!status.ok()) return status;
    }
    status = FindOut();
    if (status.ok()) status = NameAll();
    if (!status.ok()) return status;
    NameIndexes();
    SplitAll();
    return std::move(found_);
  }

 private:
  absl::Status AddPath(const std::string& path);
  absl::Status AddFolder(const std::string& folder);
  absl::Status Add(const std::string& path, ForeignShardKind kind);
  absl::Status FindOut();
  absl::Status NameAll();
  bool KeepsName(const FoundShard& shard, const Place& place) const;
  std::string MakeName(std::string_view name);
  std::string LocationOf(const FoundShard& shard, const Place& place) const;
  absl::Status FindMembers(const Place& place, FoundShard& shard) const;
  void NameIndexes();
  void SplitAll();

  const std::span<const Format* const> formats_;
  const FindShardsOptions& options_;
  FoundShards found_;
  std::vector<Place> places_;  // of found_.shards
  fs::path out_;
  std::set<std::string> used_;                // names of shards
  std::map<std::string, uint64_t> repeated_;  // name -> how often it was made
};

absl::Status Finder::AddPath(const std::string& path) {
  struct stat facts;
  if (::stat(path.c_str(), &facts) != 0) {
    if (errno != ENOENT && errno != ENOTDIR) return IoStatus("look at", path, errno);
    return absl::InvalidArgumentError(absl::StrCat(
        EscapeForTerminal(path), " does not exist; name shards, or the folder that they lie in",
        path.find_first_of("{*") == path.npos ? ""
                                              : " (* and {..} are for a shell, which names all)"));
  }
  absl::StatusOr<ForeignShardKind> kind = FindForeignShard(path, formats_);
  if (kind.ok()) return Add(path, *std::move(kind));
  if (S_ISDIR(facts.st_mode) && absl::IsInvalidArgument(kind.status())) return AddFolder(path);
  return kind.status();
}

absl::Status Finder::AddFolder(const std::string& folder) {
  struct stat facts;
  const absl::StatusOr<Manifest> manifest = Manifest::Read(folder);
  if (!manifest.ok() && !absl::IsNotFound(manifest.status()))
    return DamagedManifest(WithoutSlashes(folder), manifest.status());
  if (manifest.ok() && !manifest->indexed_in_place()) {
    return absl::InvalidArgumentError(
        absl::StrCat(EscapeForTerminal(folder),
                     " is a dataset that pack has made, with its indexes; pack repair makes again "
                     "those that are lost"));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(folder));
  const size_t before = found_.shards.size();
  absl::Status compressed;  // the first one
  for (const std::string& name : names) {
    if (name == ".pack" || name.ends_with(kIndexSuffix) || name == kManifestName) continue;
    const std::string path = absl::StrCat(WithoutSlashes(folder), "/", name);
    if (name.starts_with('.')) {
      found_.hidden.push_back(path);
      continue;
    }
    absl::StatusOr<ForeignShardKind> kind = FindForeignShard(path, formats_);
    const bool missing = ::stat(path.c_str(), &facts) != 0 && (errno == ENOENT || errno == ELOOP);
    if (missing || absl::IsNotFound(kind.status())) {
      // It was listed just now: the user would not want a dataset without this shard.
      return absl::InvalidArgumentError(
          absl::StrCat(EscapeForTerminal(path),
                       " is a dangling link, or was removed just now; name the shards "
                       "one by one to leave it out"));
    }
    if (kind.ok()) {
      RETURN_IF_ERROR(Add(path, *std::move(kind)));
    } else if (absl::IsInvalidArgument(kind.status())) {
      if (found_.other_files++ < kNamedOthers) found_.others.push_back(path);
    } else if (absl::IsUnimplemented(kind.status())) {
      if (compressed.ok()) compressed = kind.status();
    } else {
      return kind.status();
    }
  }
  // It may be a shard like any other file: anything that may hold samples is not left out.
  if (!compressed.ok()) {
    return absl::UnimplementedError(absl::StrCat(
        std::string(compressed.message()), ", or name the shards one by one to leave it out"));
  }
  if (found_.shards.size() > before) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(EscapeForTerminal(folder), " holds no shard in a format that is known here"));
}

absl::Status Finder::Add(const std::string& path, ForeignShardKind kind) {
  if (found_.format == nullptr) found_.format = kind.format;
  if (found_.format != kind.format) {
    return absl::InvalidArgumentError(
        absl::StrCat(EscapeForTerminal(path), " is ", std::string(kind.format->name),
                     ", the shards before it are ", std::string(found_.format->name),
                     "; a dataset has one format"));
  }
  struct stat facts;
  if (::stat(kind.data_path.c_str(), &facts) != 0) return IoStatus("look at", path, errno);
  ASSIGN_OR_RETURN(Place place, PlaceOf(path));
  FoundShard shard;
  shard.path = WithoutSlashes(path);
  shard.data_path = std::move(kind.data_path);
  shard.bytes = static_cast<uint64_t>(facts.st_size);
  found_.shards.push_back(std::move(shard));
  places_.push_back(std::move(place));
  return absl::OkStatus();
}

absl::Status Finder::FindOut() {
  if (found_.shards.empty()) return absl::InvalidArgumentError("no shards given");
  std::error_code error;
  if (!options_.out.empty()) {
    found_.out = WithoutSlashes(options_.out);
    out_ = fs::weakly_canonical(fs::absolute(found_.out), error);
    if (error) return IoStatus("look at", found_.out, error.value());
    if (!out_.has_filename()) out_ = out_.parent_path();  // for a trailing slash
    return absl::OkStatus();
  }
  out_ = places_[0].folder;
  found_.out = places_[0].shown_folder;
  for (const Place& place : places_) {
    if (place.folder == out_) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the shards lie in several folders, ", EscapeForTerminal(out_.native()),
                     " and ", EscapeForTerminal(place.folder.native()),
                     "; say with -o which folder the manifest and the indexes go to"));
  }
  return absl::OkStatus();
}

bool Finder::KeepsName(const FoundShard& shard, const Place& place) const {
  return IsDatasetFileName(place.name) && IsDatasetFileName(shard.file_name) &&
         !place.name.ends_with(kIndexSuffix) && place.name != kManifestName &&
         IsDatasetFileName(LongIndexName(place.name));
}

// A name that a manifest can hold and no other shard has.
std::string Finder::MakeName(std::string_view name) {
  std::string made(name.substr(0, kMaxMadeNameBytes));
  for (char& c : made) {
    if (!IsDatasetFileName(std::string_view(&c, 1)) && c != '.') c = '_';
  }
  if (made.starts_with('.')) made[0] = '_';
  std::string unique = made;
  const auto taken = [&] {
    return used_.contains(unique) || unique.ends_with(kIndexSuffix) || unique == kManifestName;
  };
  uint64_t& number = repeated_[made];
  if (number == 0) number = 1;
  while (taken()) unique = absl::StrCat(made, "-", ++number);
  return unique;
}

std::string Finder::LocationOf(const FoundShard& shard, const Place& place) const {
  const fs::path data = place.folder / shard.file_name;
  const auto first_folder = [](const fs::path& path) {
    auto at = path.begin();
    return at == path.end() || ++at == path.end() ? fs::path() : *at;
  };
  const bool related = first_folder(data) == first_folder(out_) && data.parent_path() != "/";
  return (related ? data.lexically_relative(out_) : data).native();
}

absl::Status Finder::NameAll() {
  std::vector<std::string> data_files;
  for (size_t i = 0; i < places_.size(); ++i) {
    const std::string_view data_file = found_.format->traits.data_file;
    std::string& name = found_.shards[i].file_name;
    name = places_[i].name;
    if (!data_file.empty()) absl::StrAppend(&name, "/", std::string(data_file));
    data_files.push_back((places_[i].folder / name).native());
  }
  ASSIGN_OR_RETURN(const std::optional<NamedTwice> twice, FindSameFile(data_files));
  if (twice) {
    return absl::InvalidArgumentError(absl::StrCat(
        EscapeForTerminal(found_.shards[twice->again].path), " is given twice, the first time as ",
        EscapeForTerminal(found_.shards[twice->first].path)));
  }
  std::vector<size_t> unnamed;
  for (size_t i = 0; i < places_.size(); ++i) {
    FoundShard& shard = found_.shards[i];
    const Place& place = places_[i];
    const bool in_out = place.folder == out_;
    found_.shards_in_out = found_.shards_in_out || in_out;
    if (!in_out || !KeepsName(shard, place)) {
      unnamed.push_back(i);
      continue;
    }
    shard.name = place.name;
    used_.insert(shard.name);
    RETURN_IF_ERROR(FindMembers(place, shard));
  }
  // Generated names give way to names that cannot change.
  for (const size_t i : unnamed) {
    FoundShard& shard = found_.shards[i];
    shard.name = MakeName(places_[i].name);
    used_.insert(shard.name);
    shard.location = LocationOf(shard, places_[i]);
    shard.file_name.clear();
    if (IsShardLocation(shard.location)) continue;
    return absl::InvalidArgumentError(absl::StrCat("the path of ", EscapeForTerminal(shard.path),
                                                   " is too long or odd for a manifest"));
  }
  return absl::OkStatus();
}

// All of them, since any may hold data (labels, for example), except those that every reader
// creates itself.
absl::Status Finder::FindMembers(const Place& place, FoundShard& shard) const {
  const Format::Traits& traits = found_.format->traits;
  if (traits.data_file.empty()) return absl::OkStatus();
  std::error_code error;
  for (fs::directory_iterator it(place.folder / place.name, error), end; !error && it != end;
       it.increment(error)) {
    const std::string file = it->path().filename().native();
    const std::string name = absl::StrCat(shard.name, "/", file);
    if (file == traits.data_file || file == traits.lock_file || !IsDatasetFileName(name)) continue;
    const std::string path = it->path().native();
    struct stat facts;
    if (::stat(path.c_str(), &facts) != 0) {
      if (errno == ENOENT || errno == ELOOP) continue;  // a dangling link holds no data
      return IoStatus("look at", path, errno);
    }
    if (S_ISREG(facts.st_mode)) shard.members.push_back(name);
  }
  std::sort(shard.members.begin(), shard.members.end());
  return error ? IoStatus("list", shard.path, error.value()) : absl::OkStatus();
}

void Finder::NameIndexes() {
  std::set<std::string> names;
  for (FoundShard& shard : found_.shards) {
    shard.index_name = IndexName(shard.name);
    names.insert(shard.index_name);
  }
  if (names.size() == found_.shards.size()) return;
  for (FoundShard& shard : found_.shards) shard.index_name = LongIndexName(shard.name);
}

void Finder::SplitAll() {
  std::vector<std::string> names;
  for (const Place& place : places_) names.push_back(place.name);
  const ShardSplits told = SplitsOfShardNames(names);
  found_.splits_differ = told.differ && options_.split.empty();
  for (size_t i = 0; i < found_.shards.size(); ++i) {
    found_.shards[i].split = !options_.split.empty() ? options_.split
                             : told.splits.empty()   ? std::string(kOneSplit)
                                                     : told.splits[i];
  }
}

}  // namespace

absl::StatusOr<FoundShards> FindShards(std::span<const std::string> paths,
                                       std::span<const Format* const> formats,
                                       const FindShardsOptions& options) {
  return Finder(formats, options).Find(paths);
}

}  // namespace shardpack

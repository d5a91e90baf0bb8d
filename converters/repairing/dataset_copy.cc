#include "converters/repairing/dataset_copy.h"

#include <errno.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/io/hash.h"
#include "formats/io/lack_of_resources.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr size_t kOpenFiles = 64;  // per copy
constexpr size_t kMaxPlaces = 2;   // for one hash in one shard, in case one is damaged

bool StaysBelow(std::string_view path) {
  if (path.empty() || path.front() == '/') return false;
  return absl::StrCat("/", std::string(path), "/").find("/../") == std::string::npos &&
         path.find('\0') == std::string_view::npos;
}

// Whether the error says nothing about the content; missing, too short or damaged would be a
// result.
bool IsUnread(const absl::Status& status) {
  return !status.ok() && (absl::IsPermissionDenied(status) || !IsAboutThePath(status));
}

}  // namespace

DatasetCopy::DatasetCopy(std::string path, Manifest manifest)
    : path_(std::move(path)), manifest_(std::move(manifest)), cache_(std::make_unique<Cache>()) {}

absl::StatusOr<DatasetCopy> DatasetCopy::Open(const std::string& path) {
  ASSIGN_OR_RETURN(Manifest manifest, Manifest::Read(path));
  return DatasetCopy(path, std::move(manifest));
}

absl::StatusOr<const ShardIndex*> DatasetCopy::index(uint32_t shard) const {
  const std::lock_guard lock(cache_->mutex);
  auto known = cache_->indexes.find(shard);
  if (known == cache_->indexes.end()) {
    const ManifestShard& row = manifest_.shards[shard];
    absl::StatusOr<ShardIndex> opened =
        ShardIndex::Open(PathOf(row.index.name), row.bytes, row.index.xxh3_128);
    if (IsUnread(opened.status())) return opened.status();
    known = cache_->indexes.try_emplace(shard).first;
    if (opened.ok() && opened->records() == row.records) known->second = *std::move(opened);
  }
  return known->second ? &*known->second : nullptr;
}

void DatasetCopy::Forget(uint32_t shard) {
  const std::lock_guard lock(cache_->mutex);
  cache_->indexes.erase(shard);
  cache_->files.erase(shard);
}

absl::Status DatasetCopy::Read(uint32_t shard, uint64_t offset, std::span<std::byte> into) const {
  std::shared_ptr<const File> file;
  {
    const std::lock_guard lock(cache_->mutex);
    if (cache_->files.size() >= kOpenFiles && !cache_->files.contains(shard)) cache_->files.clear();
    std::shared_ptr<const File>& known = cache_->files[shard];
    if (known == nullptr) {
      ASSIGN_OR_RETURN(File opened, File::OpenRead(DataPath(shard)));
      known = std::make_shared<File>(std::move(opened));
    }
    file = known;
  }
  return file->ReadExactlyAt(offset, into);
}

absl::Status FieldFinder::Locate() {
  for (uint32_t c = 0; c < copies_.size(); ++c) {
    for (uint32_t shard = 0; shard < copies_[c]->manifest().shards.size(); ++shard) {
      const absl::StatusOr<const ShardIndex*> opened = copies_[c]->index(shard);
      if (IsLackOfResources(opened.status())) return opened.status();
      if (!opened.ok() && unread_index_.empty())
        unread_index_ = std::string(opened.status().message());
      const ShardIndex* index = opened.value_or(nullptr);
      if (index == nullptr) continue;
      for (size_t field = 0; field < index->fields(); ++field) {
        for (uint64_t record = 0; record < index->records(); ++record) {
          if (!index->has_field(record, field)) continue;
          const auto wanted = places_.find(index->hash(record, field));
          if (wanted == places_.end()) continue;
          std::vector<Place>& places = wanted->second;
          const size_t size = places.size();
          const bool enough = size >= kMaxPlaces && places[size - kMaxPlaces].copy == c &&
                              places[size - kMaxPlaces].shard == shard;
          if (!enough) places.push_back({c, shard, record, field});
        }
      }
    }
  }
  return absl::OkStatus();
}

absl::Status FieldFinder::ReadFile(const std::string& folder, const WantedField& wanted,
                                   std::span<std::byte> into) const {
  const absl::Status no_such_file = absl::NotFoundError("");
  if (!StaysBelow(wanted.source_path)) return no_such_file;
  std::string path = absl::StrCat(folder, "/", std::string(wanted.source_path));
  if (wanted.name != kImageField) {
    const auto sidecar = std::find_if(sidecars_.begin(), sidecars_.end(), [&](const Sidecar& each) {
      return each.field == wanted.name;
    });
    if (sidecar == sidecars_.end()) return no_such_file;
    const size_t name = path.rfind('/') + 1;
    path.resize(name + Stem(std::string_view(path).substr(name)).size());
    absl::StrAppend(&path, ".", sidecar->suffix);
  }
  struct stat facts;
  if (::stat(path.c_str(), &facts) != 0) return IoStatus("look at", path, errno);
  if (!S_ISREG(facts.st_mode) || static_cast<uint64_t>(facts.st_size) != wanted.length)
    return no_such_file;
  ASSIGN_OR_RETURN(const File file, File::OpenRead(path));
  return file.ReadExactlyAt(0, into);
}

absl::StatusOr<std::optional<std::string>> FieldFinder::Read(const WantedField& wanted,
                                                             std::span<std::byte> into,
                                                             std::string& unread) const {
  const auto note = [&](const absl::Status& status) {
    if (IsUnread(status)) unread = std::string(status.message());
  };
  if (const auto found = places_.find(wanted.hash); found != places_.end()) {
    for (const Place& place : found->second) {
      const DatasetCopy& copy = *copies_[place.copy];
      const absl::StatusOr<const ShardIndex*> index = copy.index(place.shard);
      absl::Status read = index.status();
      if (read.ok()) {
        if (*index == nullptr) continue;  // it was there when locations were recorded
        const Extent extent = (*index)->field(place.record, place.field);
        if (extent.length != wanted.length) continue;
        read = copy.Read(place.shard, extent.offset, into);
      }
      if (IsLackOfResources(read)) return read;
      if (read.ok() && Xxh3_64(into) == wanted.hash) return copy.path();
      note(read);
    }
  }
  for (const std::string& folder : folders_) {
    const absl::Status read = ReadFile(folder, wanted, into);
    if (IsLackOfResources(read)) return read;
    if (read.ok() && Xxh3_64(into) == wanted.hash) return folder;
    note(read);
  }
  if (unread.empty()) unread = unread_index_;
  return std::nullopt;
}

}  // namespace shardpack

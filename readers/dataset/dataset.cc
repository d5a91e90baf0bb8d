#include "readers/dataset/dataset.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "formats/core/dataset_parts.h"
#include "formats/core/finding.h"
#include "formats/io/error_facts.h"
#include "formats/io/exists.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/io/shell_quoted.h"
#include "formats/io/status_macros.h"
#include "readers/dataset/class_difference.h"
#include "readers/dataset/foreign_shard.h"
#include "readers/dataset/per_process.h"
#include "readers/dataset/shard_files.h"
#include "readers/dataset/warm_shards.h"

namespace shardpack {
namespace {

constexpr int kOpenAttempts = 3;  // of a dataset that others replace meanwhile

// The index of a shard, loaded once by the first thread that needs it.
struct IndexSlot {
  struct Loaded {
    std::mutex mutex;
    std::optional<ShardIndex> index;
  };
  PerProcess<Loaded> loaded;
  std::atomic<const ShardIndex*> ready{nullptr};  // points to the index once it is loaded
};

std::string FileName(const std::string& path) {
  std::filesystem::path name(path);
  if (!name.has_filename()) name = name.parent_path();  // a folder path with a trailing slash
  return name.filename().string();
}

// Of a file that the manifest lists.
absl::Status IsMissing(const absl::Status& failed, const std::string& path) {
  return Reworded(failed,
                  absl::StrCat(EscapeForTerminal(path), " is missing: the manifest lists it"),
                  absl::StatusCode::kDataLoss);
}

absl::Status CheckSize(const std::string& path, uint64_t expected) {
  struct stat facts;
  if (::stat(path.c_str(), &facts) != 0) {
    const absl::Status failed = IoStatus("stat", path, errno);
    return absl::IsNotFound(failed) ? IsMissing(failed, path) : failed;
  }
  if (!S_ISREG(facts.st_mode) || static_cast<uint64_t>(facts.st_size) != expected) {
    return WithFacts(absl::DataLossError(absl::StrCat(EscapeForTerminal(path), " has ",
                                                      S_ISREG(facts.st_mode) ? facts.st_size : 0,
                                                      " bytes, the manifest says ", expected)),
                     {.path = path});
  }
  return absl::OkStatus();
}

// Explains a folder without a manifest that is not a shard.
absl::Status NoDataset(const std::string& folder, bool may_be_shard) {
  ASSIGN_OR_RETURN(const bool unfinished, HoldsDatasetParts(folder));
  const std::string name = EscapeForTerminal(folder);
  if (unfinished) {
    return WithFacts(absl::DataLossError(absl::StrCat(
                         name,
                         " has no manifest.json: its build has not finished, or the file was lost. "
                         "What to do is told by\n  ",
                         TypedProgram(), " validate ", ShellQuoted(folder))),
                     {.path = folder});
  }
  if (may_be_shard) return absl::OkStatus();
  return WithFacts(
      absl::InvalidArgumentError(absl::StrCat(
          name, " is not a packed dataset (no manifest.json); pack it first: pack SRC -o OUT")),
      {.path = folder});
}

// Drops the field's pages from the page cache, since a mismatch may come from memory, not the disk.
// Only whole pages can be dropped.
void DropPages(const File& file, const Extent& extent) {
  constexpr uint64_t kPage = 4096;
  const uint64_t begin = extent.offset & ~(kPage - 1);
  const uint64_t end = (extent.offset + extent.length + kPage - 1) & ~(kPage - 1);
  // Only advice: if the kernel ignores it, the second read returns the same bytes.
  (void)::posix_fadvise(file.descriptor(), static_cast<off_t>(begin),
                        static_cast<off_t>(end - begin), POSIX_FADV_DONTNEED);
}

}  // namespace

struct Dataset::State {
  bool has_manifest = true;
  struct stat manifest_file = {};  // as it was opened, of a dataset that has a root
  Manifest manifest;               // without a file: only what Identity() needs
  std::optional<Digest> whole;     // the identity, where it is not that of these shards
  std::string root;                // of the manifest
  std::string where;               // what was opened, for messages
  std::vector<DatasetShard> shards;
  // The first id of each shard: compact, so that a search touches few cache lines.
  std::vector<uint64_t> first_ids;
  uint64_t records = 0;
  std::optional<ShardFiles> files;
  PerProcess<WarmShards> warm;
  std::vector<std::string> left_out, warnings;
  std::vector<LostSample> lost;
  // For a split and joined datasets: the dataset and shard whose index is used. Otherwise empty.
  struct Origin {
    std::shared_ptr<const State> dataset;
    uint32_t shard = 0;
  };
  std::vector<Origin> origins;
  mutable std::deque<IndexSlot> indexes;

  // Before the shard that they are of.
  void AddLostOf(const State& other, uint32_t shard) {
    for (LostSample sample : other.lost) {
      if (sample.shard != shard) continue;
      sample.shard = static_cast<uint32_t>(shards.size());
      lost.push_back(std::move(sample));
    }
  }
  void AddShard(DatasetShard shard) {
    shard.first_id = records;
    first_ids.push_back(records);
    records += shard.records;
    shards.push_back(std::move(shard));
    indexes.emplace_back();
  }
  void AddShardOf(const std::shared_ptr<const State>& dataset, uint32_t number) {
    AddShard(dataset->shards[number]);
    origins.push_back({dataset, number});
  }
  // Takes the index of the most recently added shard, which is already loaded.
  void Take(ShardIndex index) {
    IndexSlot& slot = indexes.back();
    IndexSlot::Loaded& loaded = slot.loaded.Get();
    loaded.index = std::move(index);
    slot.ready.store(&*loaded.index, std::memory_order_release);
  }
  void Close() {
    std::vector<std::string> paths;
    for (const DatasetShard& shard : shards) paths.push_back(shard.data_path);
    files.emplace(std::move(paths));
  }
  absl::Status CheckShard(uint32_t shard) const {
    if (shard < shards.size()) return absl::OkStatus();
    return absl::OutOfRangeError(absl::StrCat("shard ", shard, " of ", shards.size(), " shards"));
  }
  void AddLeftOut(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      if (std::find(left_out.begin(), left_out.end(), name) == left_out.end())
        left_out.push_back(name);
    }
  }
  absl::Status CheckNotReplaced() const;
  // The reason of the failure: that the dataset was replaced, or else the failure itself.
  absl::Status ReasonOf(absl::Status failure) const {
    absl::Status replaced = CheckNotReplaced();
    return replaced.ok() ? std::move(failure) : std::move(replaced);
  }
  absl::StatusOr<const ShardIndex*> BorrowIndex(uint32_t shard) const;
  absl::Status ReadField(uint32_t shard, const ShardIndex& index, uint64_t record, size_t field,
                         std::span<std::byte> into) const;
};

absl::StatusOr<Dataset> Dataset::Open(const std::string& path,
                                      std::span<const Format* const> foreign) {
  struct stat facts;
  if (::stat(path.c_str(), &facts) != 0) return IoStatus("open", path, errno);
  if (!S_ISDIR(facts.st_mode)) return OpenShards({&path, 1}, foreign);
  ASSIGN_OR_RETURN(const bool has_manifest,
                   Exists(absl::StrCat(path, "/", std::string(kManifestName))));
  if (!has_manifest) {
    RETURN_IF_ERROR(NoDataset(path, /*may_be_shard=*/!foreign.empty()));
    return OpenShards({&path, 1}, foreign);
  }
  return OpenManifest(path, nullptr);
}

absl::StatusOr<Dataset> Dataset::OpenDamaged(const std::string& path,
                                             std::vector<DamagedFile>& damage) {
  return OpenManifest(path, &damage);
}

absl::StatusOr<Dataset> Dataset::OpenManifest(const std::string& path,
                                              std::vector<DamagedFile>* damage) {
  absl::Status failed;
  for (int attempt = 0; attempt < kOpenAttempts; ++attempt) {
    auto state = std::make_shared<State>();
    // Before the manifest is read: what replaces it later is another file.
    const std::string file = absl::StrCat(path, "/", std::string(kManifestName));
    if (::stat(file.c_str(), &state->manifest_file) != 0) return IoStatus("stat", file, errno);
    ASSIGN_OR_RETURN(state->manifest, Manifest::Read(path));
    state->root = state->where = path;
    std::vector<DamagedFile> found;
    for (const ManifestShard& shard : state->manifest.shards) {
      if (!failed.ok() && !absl::IsDataLoss(failed)) break;
      const std::string data_name = state->manifest.DataFileOf(shard);
      const std::string data = PathInDataset(path, data_name);
      for (const auto& [name, file, bytes] :
           {std::tuple(data_name, data, shard.bytes),
            std::tuple(shard.index.name, absl::StrCat(path, "/", shard.index.name),
                       shard.index.bytes)}) {
        absl::Status size = CheckSize(file, bytes);
        if (size.ok()) continue;
        found.push_back({name, std::string(size.message())});
        // What could not be looked at is not known to be damaged, however damaged others are.
        if (failed.ok() || !absl::IsDataLoss(size)) failed = std::move(size);
      }
      state->AddShard({shard.name, shard.split, data, shard.bytes, shard.records});
    }
    state->Close();
    if (failed.ok()) return Dataset(std::move(state));
    failed = state->ReasonOf(std::move(failed));
    if (absl::IsFailedPrecondition(failed)) {
      if (attempt + 1 < kOpenAttempts) failed = absl::OkStatus();
      continue;
    }
    if (damage == nullptr || !absl::IsDataLoss(failed)) return failed;
    *damage = std::move(found);
    return Dataset(std::move(state));
  }
  return failed;
}

absl::Status Dataset::CheckNotReplaced() const { return state_->CheckNotReplaced(); }

absl::Status Dataset::State::CheckNotReplaced() const {
  if (!origins.empty()) {
    const State* last = nullptr;
    for (const Origin& origin : origins) {
      if (origin.dataset.get() == last) continue;
      last = origin.dataset.get();
      RETURN_IF_ERROR(last->CheckNotReplaced());
    }
  }
  if (root.empty()) return absl::OkStatus();
  struct stat now;
  const std::string file = absl::StrCat(root, "/", std::string(kManifestName));
  const bool there = ::stat(file.c_str(), &now) == 0;
  // Nothing is known if it cannot be looked at, or read.
  if (!there && errno != ENOENT && errno != ENOTDIR) return absl::OkStatus();
  // An inode's number may be that of another file by now.
  const auto facts_of = [](const struct stat& each) {
    return std::make_tuple(each.st_dev, each.st_ino, each.st_size, each.st_mtim.tv_sec,
                           each.st_mtim.tv_nsec);
  };
  if (there && facts_of(now) == facts_of(manifest_file)) return absl::OkStatus();
  // A repair writes the same manifest again.
  if (there) {
    const absl::StatusOr<Manifest> read = Manifest::Read(root);
    if (read.ok() ? read->Identity() == manifest.Identity() : !absl::IsNotFound(read.status()))
      return absl::OkStatus();
  }
  return WithFacts(
      absl::FailedPreconditionError(absl::StrCat(
          EscapeForTerminal(root),
          there ? " is being replaced by another process, or was while it was read; open it again"
                : " was removed or renamed while it was open")),
      {.path = root});
}

absl::StatusOr<Dataset> Dataset::OpenShards(std::span<const std::string> paths,
                                            std::span<const Format* const> foreign,
                                            const ForeignLabels& labels) {
  if (paths.empty()) return absl::InvalidArgumentError("no shards given");
  if (!labels.splits.empty() && labels.splits.size() != paths.size())
    return absl::InvalidArgumentError("a split for each shard, or none");
  auto state = std::make_shared<State>();
  state->has_manifest = false;
  state->where = paths[0];
  state->manifest.classes = labels.classes;
  ShardWarnings warnings;
  SameLabelBase label_base;
  for (size_t i = 0; i < paths.size(); ++i) {
    const std::string& path = paths[i];
    ASSIGN_OR_RETURN(ForeignShard shard,
                     ScanForeignShard(path, foreign, {.has_classes = !labels.classes.empty()}));
    const std::string format(shard.format->name);
    if (!state->manifest.format.empty() && state->manifest.format != format) {
      return absl::InvalidArgumentError(absl::StrCat(EscapeForTerminal(path), " is ", format,
                                                     ", the shards before it are ",
                                                     state->manifest.format));
    }
    state->manifest.format = format;
    RETURN_IF_ERROR(label_base.Add(path, shard.label_base));
    ManifestShard row;
    row.name = FileName(path);
    if (!labels.splits.empty()) row.split = labels.splits[i];
    row.bytes = shard.bytes;
    row.records = shard.index.records();
    row.xxh3_128 = shard.digest;
    state->manifest.shards.push_back(row);
    state->AddLeftOut(shard.left_out);
    // A caller that takes classes from these texts misses no label, and `pack convert` tells of
    // both.
    std::erase_if(shard.warnings, [](const ShardWarning& warning) {
      return warning.kind == SpecOf(FindingId::kWdsLabelNotInteger).name;
    });
    warnings.Add(shard.warnings);
    for (LostSample& sample : shard.lost) {
      sample.shard = static_cast<uint32_t>(i);
      state->lost.push_back(std::move(sample));
    }
    state->AddShard({row.name, row.split, shard.data_path, row.bytes, row.records});
    state->Take(std::move(shard.index));
  }
  state->warnings = warnings.Texts();
  state->Close();
  return Dataset(std::move(state));
}

std::span<const DatasetShard> Dataset::shards() const { return state_->shards; }
uint64_t Dataset::size() const {
  return selection_ == nullptr ? state_->records : selection_->ids.size();
}
std::span<const std::string> Dataset::classes() const { return state_->manifest.classes; }
const std::string& Dataset::format() const { return state_->manifest.format; }
Digest Dataset::identity() const {
  if (selection_ != nullptr) return selection_->identity;
  return state_->whole ? *state_->whole : state_->manifest.Identity();
}
std::span<const std::string> Dataset::left_out() const { return state_->left_out; }
std::span<const std::string> Dataset::warnings() const { return state_->warnings; }
std::span<const LostSample> Dataset::lost_samples() const { return state_->lost; }
const Manifest* Dataset::manifest() const {
  return state_->has_manifest && selection_ == nullptr ? &state_->manifest : nullptr;
}

absl::StatusOr<ShardIndex> Dataset::index(uint32_t shard) const {
  ASSIGN_OR_RETURN(const ShardIndex* borrowed, BorrowIndex(shard));
  return *borrowed;
}

absl::StatusOr<const ShardIndex*> Dataset::BorrowIndex(uint32_t shard) const {
  return state_->BorrowIndex(shard);
}

absl::StatusOr<const ShardIndex*> Dataset::State::BorrowIndex(uint32_t shard) const {
  RETURN_IF_ERROR(CheckShard(shard));
  if (!origins.empty()) return origins[shard].dataset->BorrowIndex(origins[shard].shard);
  IndexSlot& slot = indexes[shard];
  if (const ShardIndex* ready = slot.ready.load(std::memory_order_acquire)) return ready;
  IndexSlot::Loaded& loaded = slot.loaded.Get();
  const std::lock_guard lock(loaded.mutex);
  if (loaded.index) return &*loaded.index;
  const ManifestShard& row = manifest.shards[shard];
  const std::string name = absl::StrCat(root, "/", row.index.name);
  absl::StatusOr<ShardIndex> opened = ShardIndex::Open(name, row.bytes, row.index.xxh3_128);
  if (!opened.ok()) {
    absl::Status failed = opened.status();
    if (absl::IsNotFound(failed)) failed = IsMissing(std::move(failed), name);
    return ReasonOf(std::move(failed));
  }
  ShardIndex index = *std::move(opened);
  if (index.records() != row.records) {
    return WithFacts(absl::DataLossError(absl::StrCat(row.index.name, " has ", index.records(),
                                                      " records, the manifest says ", row.records)),
                     {.path = name, .shard = row.name});
  }
  loaded.index = std::move(index);
  slot.ready.store(&*loaded.index, std::memory_order_release);
  return &*loaded.index;
}

absl::StatusOr<std::shared_ptr<const File>> Dataset::OpenFile(uint32_t shard) const {
  RETURN_IF_ERROR(state_->CheckShard(shard));
  return state_->files->Get(shard);
}

absl::StatusOr<Dataset> Dataset::Split(std::string_view name) const {
  if (selection_ != nullptr) return SplitSelection(name);
  std::vector<uint32_t> found;
  std::set<std::string> names;
  for (uint32_t s = 0; s < state_->shards.size(); ++s) {
    names.insert(state_->shards[s].split);
    if (state_->shards[s].split == name) found.push_back(s);
  }
  if (found.empty()) {
    return absl::NotFoundError(absl::StrCat("no split ", EscapeForTerminal(name),
                                            "; the dataset has ",
                                            EscapeForTerminal(absl::StrJoin(names, ", "))));
  }
  return Dataset(StateOf(found));
}

std::shared_ptr<Dataset::State> Dataset::StateOf(std::span<const uint32_t> shards) const {
  auto part = std::make_shared<State>();
  part->has_manifest = state_->has_manifest;
  part->manifest = state_->manifest;
  part->manifest.shards.clear();
  part->where = state_->where;
  part->left_out = state_->left_out;
  part->warnings = state_->warnings;
  for (const uint32_t shard : shards) {
    part->AddLostOf(*state_, shard);
    part->manifest.shards.push_back(state_->manifest.shards[shard]);
    part->AddShardOf(state_, shard);
  }
  part->Close();
  return part;
}

absl::StatusOr<Dataset> Dataset::WithShards(std::span<const uint32_t> shards) const {
  if (selection_ != nullptr) return absl::InvalidArgumentError("shards of a selection");
  for (const uint32_t shard : shards) RETURN_IF_ERROR(state_->CheckShard(shard));
  const std::shared_ptr<State> part = StateOf(shards);
  part->whole = identity();
  return Dataset(part);
}

absl::StatusOr<Dataset> Dataset::Join(std::span<const Dataset> parts) {
  if (parts.empty()) return absl::InvalidArgumentError("no datasets to join");
  auto joined = std::make_shared<State>();
  joined->has_manifest = false;
  Manifest& manifest = joined->manifest;
  manifest.classes = parts[0].state_->manifest.classes;
  std::vector<std::string> formats, layouts;
  for (const Dataset& part : parts) {
    const std::shared_ptr<const State>& state = part.state_;
    if (state->manifest.classes != manifest.classes) {
      return absl::InvalidArgumentError(
          absl::StrCat(EscapeForTerminal(state->where), " has other classes than ",
                       EscapeForTerminal(parts[0].state_->where),
                       ", so that a label would not mean the same in both: ",
                       FirstClassDifference(parts[0].classes(), "", part.classes(), "")));
    }
    for (uint32_t s = 0; s < state->shards.size(); ++s) {
      joined->AddLostOf(*state, s);
      manifest.shards.push_back(state->manifest.shards[s]);
      joined->AddShardOf(state, s);
      // Shards of different datasets often have the same names.
      joined->shards.back().name = state->shards[s].data_path;
    }
    joined->AddLeftOut(state->left_out);
    joined->warnings.insert(joined->warnings.end(), state->warnings.begin(), state->warnings.end());
    formats.push_back(state->manifest.format);
    layouts.push_back(state->manifest.layout);
  }
  const auto different = [](std::vector<std::string> names) {
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return absl::StrJoin(names, "+");
  };
  manifest.format = different(std::move(formats));
  manifest.layout = different(std::move(layouts));
  joined->where = absl::StrCat("the join of ", parts.size(), " datasets");
  joined->Close();
  const Dataset whole(std::move(joined));
  if (std::none_of(parts.begin(), parts.end(),
                   [](const Dataset& part) { return part.selection_ != nullptr; })) {
    return whole;
  }
  std::vector<uint64_t> ids;
  uint64_t first = 0;
  for (const Dataset& part : parts) {
    for (uint64_t id = 0; id < part.size(); ++id) ids.push_back(first + part.UnselectedId(id));
    first += part.state_->records;
  }
  return whole.WithSelection(std::move(ids));
}

SampleLocation Dataset::Locate(uint64_t id) const {
  id = UnselectedId(id);
  const std::vector<uint64_t>& first_ids = state_->first_ids;
  // Finds the last shard that begins at or before the id, skipping shards without records.
  const auto after = std::upper_bound(first_ids.begin(), first_ids.end(), id);
  const auto shard = static_cast<size_t>(after - first_ids.begin()) - 1;
  return {static_cast<uint32_t>(shard), id - first_ids[shard]};
}

absl::Status Dataset::State::ReadField(uint32_t shard, const ShardIndex& index, uint64_t record,
                                       size_t field, std::span<std::byte> into) const {
  const Extent extent = index.field(record, field);
  const auto failed = [&](const absl::Status& why) {
    const DatasetShard& row = shards[shard];
    if (absl::Status replaced = CheckNotReplaced(); !replaced.ok()) return replaced;
    return WithFacts(
        Reworded(why, absl::StrCat(EscapeForTerminal(row.name), " record ", record, " key ",
                                   EscapeForTerminal(index.key(record)), " field ",
                                   EscapeForTerminal(index.field_name(field)), " at offset ",
                                   extent.offset, " (", extent.length,
                                   " bytes): ", std::string(why.message()))),
        {.path = row.data_path,
         .shard = row.name,
         .key = std::string(index.key(record)),
         .field = std::string(index.field_name(field)),
         .record = static_cast<int64_t>(record),
         .offset = static_cast<int64_t>(extent.offset)});
  };
  const auto damaged = [&](const std::string& why) { return failed(absl::DataLossError(why)); };
  absl::StatusOr<std::shared_ptr<const File>> file = files->Get(shard);
  if (!file.ok()) return failed(file.status());
  uint64_t hash = 0;
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (attempt > 0) DropPages(**file, extent);
    absl::Status read = (*file)->ReadExactlyAt(extent.offset, into);
    if (absl::IsOutOfRange(read)) return damaged("the shard was cut short");
    if (!read.ok()) return failed(read);
    hash = Xxh3_64(into);
    if (hash == index.hash(record, field)) return absl::OkStatus();
  }
  return damaged(absl::StrCat("its bytes differ from those that were packed (expected hash ",
                              absl::Hex(index.hash(record, field), absl::kZeroPad16), ", actual ",
                              absl::Hex(hash, absl::kZeroPad16), ")"));
}

const WarmShard& Dataset::Warm(uint32_t shard) const {
  const State* state = state_.get();
  while (!state->origins.empty()) {
    const State::Origin& origin = state->origins[shard];
    state = origin.dataset.get();
    shard = origin.shard;
  }
  return state->warm.Get(std::span<const DatasetShard>(state->shards))[shard];
}

absl::StatusOr<OwnedSample> Dataset::Read(uint64_t id) const {
  if (id >= size()) {
    return WithFacts(absl::OutOfRangeError(absl::StrCat("sample ", id, " of ", size(), " samples")),
                     {.id = static_cast<int64_t>(id)});
  }
  const SampleLocation at = Locate(id);
  ASSIGN_OR_RETURN(const ShardIndex* borrowed, BorrowIndex(at.shard));
  const ShardIndex* const found = borrowed;
  OwnedSample sample;
  sample.key = std::string(found->key(at.record));
  sample.source_path = std::string(found->source_path(at.record));
  sample.label = found->label(at.record);
  sample.image = found->image(at.record);
  for (size_t f = 0; f < found->fields(); ++f) {
    if (!found->has_field(at.record, f)) continue;
    OwnedSample::Field& field = sample.fields.emplace_back();
    field.name = std::string(found->field_name(f));
    field.bytes.resize(found->field(at.record, f).length);
    absl::Status read = state_->ReadField(at.shard, *found, at.record, f,
                                          std::as_writable_bytes(std::span(field.bytes)));
    if (!read.ok()) return WithFacts(std::move(read), {.id = static_cast<int64_t>(id)});
  }
  return sample;
}

absl::Status Dataset::ReadField(SampleLocation at, size_t field, std::span<std::byte> into) const {
  ASSIGN_OR_RETURN(const ShardIndex* borrowed, BorrowIndex(at.shard));
  const ShardIndex* const found = borrowed;
  if (at.record >= found->records() || field >= found->fields() ||
      found->field(at.record, field).length != into.size()) {
    return absl::OutOfRangeError(absl::StrCat(EscapeForTerminal(shards()[at.shard].name),
                                              " record ", at.record, ": no field ", field, " of ",
                                              into.size(), " bytes"));
  }
  absl::Status read = state_->ReadField(at.shard, *found, at.record, field, into);
  return read.ok() ? read : WithFacts(std::move(read), {.id = IdAt(at)});
}

}  // namespace shardpack

#include "converters/indexing/index_shards.h"

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "converters/indexing/find_shards.h"
#include "converters/indexing/index_folder.h"
#include "converters/listing/offered_flags.h"
#include "converters/planning/splits.h"
#include "converters/publishing/journal.h"
#include "converters/publishing/pack_folder.h"
#include "converters/sources/labels_beside.h"
#include "converters/sources/list_labels.h"
#include "converters/sources/shard_splits.h"
#include "formats/core/sample.h"
#include "formats/core/shard_index.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/io/resources.h"
#include "formats/io/sequential_reader.h"
#include "formats/io/status_macros.h"
#include "readers/dataset/foreign_shard.h"

namespace shardpack {
namespace {

constexpr size_t kNamedTroubles = 10;     // damaged shards, differences
constexpr size_t kCheckedRepeats = 1000;  // repeated keys that are compared byte by byte
constexpr size_t kNamedLeftOut = 10;

// One shard's contribution to the manifest and to warnings.
struct ShardFacts {
  absl::Status status;
  ManifestShard row;
  std::vector<FileEntry> members;
  DatasetFacts facts;
  std::vector<uint64_t> key_hashes;  // by record; 0 = no key
  std::vector<std::string> left_out;
  std::vector<ShardWarning> warnings;
  uint64_t without_image = 0;                  // or with something that is not an image
  uint64_t unlabelled = 0;                     // records without a label
  bool labelled = false, first_class = false;  // a record has a label; a record has label 0
  std::optional<uint64_t> negative_label;      // first record with a label below kNoLabel
  std::optional<int64_t> label_base;           // of a shard with labels
};

// Never 0 for a non-empty key.
uint64_t KeyHash(std::string_view key) {
  return key.empty() ? 0 : std::max<uint64_t>(Xxh3_64(AsBytes(key)), 1);
}

void AddImage(const ImageInfo& image, uint64_t bytes, ShardFacts& out) {
  AddImageFacts(image, bytes, out.facts);
  ++out.facts.image_formats[std::string(ImageExtension(image.format))];
  if (image.width == 0 || image.height == 0) ++out.without_image;
}

// Fails if a label has no class.
absl::Status AddRecords(const FoundShard& shard, const ShardIndex& index, size_t classes,
                        ShardFacts& out) {
  const std::optional<size_t> image = index.FindField(kImageField);
  out.key_hashes.resize(index.records());
  for (uint64_t r = 0; r < index.records(); ++r) {
    out.key_hashes[r] = KeyHash(index.key(r));
    out.facts.largest_record_bytes =
        std::max(out.facts.largest_record_bytes, index.record(r).length);
    if (image && index.has_field(r, *image)) {
      AddImage(index.image(r), index.field(r, *image).length, out);
    } else {
      ++out.without_image;
    }
    const int64_t label = index.label(r);
    out.unlabelled += label == kNoLabel ? 1 : 0;
    if (label < kNoLabel && !out.negative_label) out.negative_label = r;
    out.labelled = out.labelled || label >= 0;
    out.first_class = out.first_class || label == 0;
    if (classes > 0 && label >= static_cast<int64_t>(classes)) {
      return absl::InvalidArgumentError(
          absl::StrCat(EscapeForTerminal(shard.path), " record ", r, " has the label ", label,
                       "; --classes names those from 0 to ", classes - 1));
    }
  }
  return absl::OkStatus();
}

// The file of that name in the dataset's folder.
absl::StatusOr<FileEntry> EntryOf(const std::string& folder, const std::string& name) {
  ASSIGN_OR_RETURN(File file, File::OpenRead(absl::StrCat(folder, "/", name)));
  ASSIGN_OR_RETURN(uint64_t bytes, file.Size());
  ASSIGN_OR_RETURN(Digest digest, SequentialReader(file, bytes).Finish());
  return FileEntry{name, bytes, digest};
}

class Indexing {
 public:
  // `named`: the classes come from the user, not from a manifest.
  Indexing(const IndexOptions& options, bool named, FoundShards found, IndexFolder& folder)
      : options_(options), named_(named), found_(std::move(found)), folder_(folder) {}

  absl::Status ScanAll(std::span<const Format* const> formats, IndexProgress& progress,
                       const std::atomic<int>& stop);
  Manifest MakeManifest() const;
  std::vector<std::string> Warnings() const;
  const FoundShards& found() const { return found_; }

 private:
  void Scan(size_t n, std::span<const Format* const> formats, IndexProgress& progress,
            const std::atomic<int>& stop);
  absl::Status WorstStatus() const;
  absl::Status CheckLabelBases() const;
  std::optional<std::string> RepeatedKeys() const;
  std::optional<std::string> CountedFromOne() const;

  const IndexOptions& options_;
  const bool named_;
  const FoundShards found_;
  IndexFolder& folder_;
  std::vector<ShardFacts> shards_;
};

void Indexing::Scan(size_t n, std::span<const Format* const> formats, IndexProgress& progress,
                    const std::atomic<int>& stop) {
  const FoundShard& shard = found_.shards[n];
  ShardFacts& out = shards_[n];
  ForeignScanOptions options{.probe = true, .has_classes = !options_.classes.empty()};
  options.on_block = [&](uint64_t bytes) {
    progress.done_bytes.fetch_add(bytes, std::memory_order_relaxed);
    return stop.load(std::memory_order_relaxed) == 0 ? absl::OkStatus()
                                                     : absl::CancelledError("stopped");
  };
  absl::StatusOr<ForeignShard> scanned = ScanForeignShard(shard.path, formats, options);
  out.status = scanned.status();
  if (!out.status.ok()) return;
  const ShardIndex& index = scanned->index;
  if (index.records() == 0)  // pack validate would call it an error
    out.status = absl::DataLossError(EscapeForTerminal(shard.path) + " holds no sample");
  if (!out.status.ok()) return;
  out.status = AddRecords(shard, index, options_.classes.size(), out);
  if (!out.status.ok()) return;
  absl::StatusOr<FileEntry> staged =
      folder_.Stage(static_cast<uint32_t>(n), shard.index_name, AsText(index.bytes()));
  out.status = staged.status();
  if (!out.status.ok()) return;
  out.row = {shard.name,         shard.split, scanned->bytes, index.records(), scanned->digest,
             *std::move(staged), "",          shard.location};
  for (const std::string& name : shard.members) {
    absl::StatusOr<FileEntry> entry = EntryOf(found_.out, name);
    out.status = entry.status();
    if (!out.status.ok()) return;
    out.members.push_back(*std::move(entry));
  }
  out.left_out = std::move(scanned->left_out);
  out.warnings = std::move(scanned->warnings);
  out.label_base = scanned->label_base;
}

absl::Status Indexing::ScanAll(std::span<const Format* const> formats, IndexProgress& progress,
                               const std::atomic<int>& stop) {
  shards_.resize(found_.shards.size());
  for (const FoundShard& shard : found_.shards) progress.total_bytes += shard.bytes;
  progress.total_shards = shards_.size();
  try {
    tbb::task_arena arena(options_.jobs > 0 ? options_.jobs : tbb::task_arena::automatic);
    arena.execute([&] {
      tbb::parallel_for(size_t{0}, shards_.size(), [&](size_t n) {
        if (stop.load() != 0) return;
        Scan(n, formats, progress, stop);
        progress.done_shards.fetch_add(1);
      });
    });
  } catch (const std::exception& error) {
    return StatusOfException("index", error);
  }
  if (stop.load() != 0) return absl::CancelledError("stopped");
  RETURN_IF_ERROR(WorstStatus());
  return CheckLabelBases();
}

// A manifest holds a single value for the stored label of class 0.
absl::Status Indexing::CheckLabelBases() const {
  SameLabelBase same;
  for (size_t n = 0; n < shards_.size(); ++n)
    RETURN_IF_ERROR(same.Add(found_.shards[n].path, shards_[n].label_base));
  return absl::OkStatus();
}

// Damage comes before all other errors; reports the first error of a kind, and the number of
// others.
absl::Status Indexing::WorstStatus() const {
  const ShardFacts* worst = nullptr;
  for (const ShardFacts& shard : shards_) {
    if (shard.status.ok()) continue;
    if (worst == nullptr || (absl::IsDataLoss(shard.status) && !absl::IsDataLoss(worst->status))) {
      worst = &shard;
    }
  }
  if (worst == nullptr) return absl::OkStatus();
  std::vector<std::string> lines;
  size_t troubles = 0;
  for (const ShardFacts& shard : shards_) {
    if (shard.status.code() != worst->status.code()) continue;
    if (troubles++ < kNamedTroubles) lines.emplace_back(shard.status.message());
  }
  if (troubles > kNamedTroubles)
    lines.push_back(absl::StrCat("and ", troubles - kNamedTroubles, " more shards"));
  const std::string nothing = absl::IsDataLoss(worst->status) ? "\nNothing was written." : "";
  return absl::Status(worst->status.code(), absl::StrCat(absl::StrJoin(lines, "\n  "), nothing));
}

Manifest Indexing::MakeManifest() const {
  Manifest manifest;
  manifest.origin = std::string(kIndexedInPlaceOrigin);
  manifest.format = std::string(found_.format->name);
  manifest.tool = options_.tool;
  manifest.classes = options_.classes;
  for (size_t n = 0; n < shards_.size(); ++n) {
    const ManifestShard& row = shards_[n].row;
    manifest.shards.push_back(row);
    manifest.splits[row.split] += row.records;
    manifest.counts.packed += row.records;
    manifest.files.push_back(row.index);
    const std::vector<FileEntry>& members = shards_[n].members;
    manifest.files.insert(manifest.files.end(), members.begin(), members.end());
    if (row.location.empty())
      manifest.files.push_back({found_.shards[n].file_name, row.bytes, row.xxh3_128});
    if (shards_[n].label_base) manifest.label_base = *shards_[n].label_base;
    MergeFacts(shards_[n].facts, manifest.facts);
  }
  manifest.counts.seen = manifest.counts.packed;
  std::sort(manifest.files.begin(), manifest.files.end(),
            [](const FileEntry& a, const FileEntry& b) { return a.name < b.name; });
  return manifest;
}

// Records with the same key differ only by number, which is not a reason to refuse them.
std::optional<std::string> Indexing::RepeatedKeys() const {
  std::vector<uint64_t> all;
  for (const ShardFacts& shard : shards_)
    all.insert(all.end(), shard.key_hashes.begin(), shard.key_hashes.end());
  std::sort(all.begin(), all.end());
  std::set<uint64_t> repeated;
  for (size_t i = 1; i < all.size() && repeated.size() < kCheckedRepeats; ++i) {
    if (all[i] != 0 && all[i] == all[i - 1]) repeated.insert(all[i]);
  }
  std::vector<uint64_t>().swap(all);
  if (repeated.empty()) return std::nullopt;
  std::unordered_map<std::string, std::string> first;  // key -> where
  std::string example;
  uint64_t count = 0;
  for (uint32_t n = 0; n < shards_.size(); ++n) {
    const ShardFacts& shard = shards_[n];
    std::optional<ShardIndex> index;
    for (uint64_t r = 0; r < shard.key_hashes.size(); ++r) {
      if (!repeated.contains(shard.key_hashes[r])) continue;
      if (!index) {
        absl::StatusOr<ShardIndex> open =
            ShardIndex::Open(folder_.StagedPath(n), shard.row.bytes, shard.row.index.xxh3_128);
        if (!open.ok())
          return absl::StrCat("repeated keys: ", std::string(open.status().message()));
        index = *std::move(open);
      }
      const std::string place =
          absl::StrCat("record ", r, " of ", EscapeForTerminal(found_.shards[n].path));
      const auto [known, fresh] = first.try_emplace(std::string(index->key(r)), place);
      if (fresh || count++ > 0) continue;
      example =
          absl::StrCat(EscapeForTerminal(known->first), " of ", place, " is also ", known->second);
    }
  }
  if (count == 0) return std::nullopt;
  return absl::StrCat(count, repeated.size() == kCheckedRepeats ? " or more" : "",
                      count == 1 ? " sample has" : " samples have",
                      " the key of another one, the first: key ", example,
                      "; a key then finds the first of them, and pack validate calls it an error");
}

// The user named the classes of labels that start at 1.
std::optional<std::string> Indexing::CountedFromOne() const {
  const auto any = [&](bool ShardFacts::*what) {
    return std::ranges::any_of(shards_, [&](const ShardFacts& shard) { return shard.*what; });
  };
  if (!named_ || !any(&ShardFacts::labelled) || any(&ShardFacts::first_class)) return std::nullopt;
  return CountedFromOneWarning("", options_.classes[0]);
}

std::vector<std::string> Indexing::Warnings() const {
  uint64_t without_image = 0, unlabelled = 0;
  bool labelled = false;
  std::set<std::string> left_out;
  ShardWarnings of_shards;
  for (size_t n = 0; n < shards_.size(); ++n) {
    const ShardFacts& shard = shards_[n];
    const std::string path = EscapeForTerminal(found_.shards[n].path);
    without_image += shard.without_image;
    unlabelled += shard.unlabelled;
    labelled = labelled || shard.labelled;
    left_out.insert(shard.left_out.begin(), shard.left_out.end());
    of_shards.Add(shard.warnings);
    if (shard.negative_label) {
      const ShardWarning negative = {
          "negative label",
          absl::StrCat(path, " record ", *shard.negative_label,
                       " has a label below -1, which pack validate calls an error")};
      of_shards.Add({&negative, 1});
    }
  }
  std::vector<std::string> warnings = of_shards.Texts();
  if (without_image > 0) {
    warnings.push_back(absl::StrCat(without_image,
                                    without_image == 1 ? " sample has" : " samples have",
                                    " no image whose size can be told"));
  }
  if (labelled && unlabelled > 0) {
    warnings.push_back(absl::StrCat(unlabelled, unlabelled == 1 ? " sample has" : " samples have",
                                    " no label, or -1, which is taken for none"));
  } else if (unlabelled > 0) {
    warnings.push_back("no sample has a label");
  }
  if (!left_out.empty()) {
    std::vector<std::string> names;
    for (const std::string& name : left_out) {
      if (names.size() < kNamedLeftOut) names.push_back(EscapeForTerminal(name));
    }
    warnings.push_back(
        absl::StrCat("left out, because a sample cannot hold it: ", absl::StrJoin(names, ", "),
                     left_out.size() > names.size() ? ", ..." : ""));
  }
  if (std::optional<std::string> shifted = CountedFromOne())
    warnings.push_back(*std::move(shifted));
  if (const std::optional<std::string> repeated = RepeatedKeys()) warnings.push_back(*repeated);
  if (found_.splits_differ) {
    warnings.push_back(
        absl::StrCat(std::string(kSplitsDiffer),
                     "; --split NAME says another, and other splits are datasets of their own"));
  }
  return warnings;
}

// The files, by name, that are neither a shard's data nor an index.
std::map<std::string_view, const FileEntry*> FurtherFiles(const Manifest& manifest) {
  std::map<std::string_view, const FileEntry*> files;
  for (const FileEntry& file : manifest.files) files[file.name] = &file;
  for (const ManifestShard& shard : manifest.shards) {
    files.erase(manifest.DataFileOf(shard));
    files.erase(shard.index.name);
  }
  return files;
}

struct Differences {
  std::vector<std::string> lines;
  bool bytes = false;  // a shard, or another file of one, has other bytes than it had
};

void CompareFurtherFiles(const Manifest& was, const Manifest& now, Differences& found) {
  std::map<std::string_view, const FileEntry*> before = FurtherFiles(was);
  for (const auto& [name, file] : FurtherFiles(now)) {
    const auto old = before.find(name);
    if (old == before.end()) {
      found.lines.push_back(absl::StrCat(file->name, " is not in the manifest"));
      continue;
    }
    if (*old->second != *file) {
      found.lines.push_back(absl::StrCat(file->name, " has changed"));
      found.bytes = true;
    }
    before.erase(old);
  }
  for (const auto& [name, file] : before)
    found.lines.push_back(absl::StrCat(file->name, " is gone"));
}

// Possible differences between two runs of `pack index` on the same shards.
Differences Compare(const Manifest& was, const Manifest& now) {
  Differences differences;
  std::vector<std::string>& lines = differences.lines;
  const bool rebased = was.label_base != now.label_base;
  if (rebased) {
    lines.push_back(absl::StrCat("the shards' labels count from ", now.label_base,
                                 ", its index took them as counting from ", was.label_base,
                                 ", so that each is ", std::abs(now.label_base - was.label_base),
                                 now.label_base > was.label_base ? " too high" : " too low"));
  }
  std::map<std::string_view, const ManifestShard*> before;
  for (const ManifestShard& shard : was.shards) before[shard.name] = &shard;
  for (const ManifestShard& shard : now.shards) {
    const auto found = before.find(shard.name);
    if (found == before.end()) {
      lines.push_back(absl::StrCat(shard.name, " is new"));
      continue;
    }
    const ManifestShard& old = *found->second;
    if (old.bytes != shard.bytes || old.xxh3_128 != shard.xxh3_128) {
      differences.bytes = true;
      lines.push_back(absl::StrCat(shard.name, " has changed: it had ", old.bytes,
                                   " bytes and the hash ", old.xxh3_128.ToHex(), ", it has ",
                                   shard.bytes, " and ", shard.xxh3_128.ToHex()));
    } else if (!rebased &&
               (old.index.bytes != shard.index.bytes ||
                old.index.xxh3_128 != shard.index.xxh3_128)) {  // its name may be an older one
      lines.push_back(
          absl::StrCat(shard.name, " is indexed in another way by this version of pack"));
    }
    if (old.split != shard.split)
      lines.push_back(absl::StrCat(shard.name, " was in the split ", EscapeForTerminal(old.split),
                                   ", is in ", EscapeForTerminal(shard.split)));
    if (old.location != shard.location)
      lines.push_back(absl::StrCat(shard.name, " lies elsewhere than it did"));
    before.erase(found);
  }
  for (const auto& [name, shard] : before)
    lines.push_back(absl::StrCat(std::string(name), " is not given any more"));
  CompareFurtherFiles(was, now, differences);
  if (was.classes != now.classes) lines.emplace_back("the classes differ");
  if (lines.empty() && was.Identity() != now.Identity())
    lines.emplace_back("the order of the shards differs");
  return differences;
}

absl::Status RefuseDifferences(const std::string& out, Differences differences) {
  std::vector<std::string>& lines = differences.lines;
  const size_t count = lines.size();
  if (count > kNamedTroubles) {
    lines.resize(kNamedTroubles);
    lines.push_back(absl::StrCat("and ", count - kNamedTroubles, " more"));
  }
  return OfferFlags(
      absl::FailedPreconditionError(absl::StrCat(
          EscapeForTerminal(out), " holds an index that does not fit:\n  ",
          absl::StrJoin(lines, "\n  "),
          differences.bytes ? "\nIf nobody changed the shards on purpose, they are damaged: "
                              "first compare them with a good copy, or with what they were "
                              "made from. --overwrite takes what is there now as right, and "
                              "creates the index again"
                            : "\n--overwrite creates it again")),
      {{"--overwrite"}});
}

// Takes classes and splits that the user has not given from manifests beside the shards.
absl::StatusOr<LabelsBeside> NameFromManifests(FoundShards& found, IndexOptions& options) {
  if (!options.classes.empty()) return LabelsBeside{};
  std::vector<std::string> paths;
  for (const FoundShard& shard : found.shards) paths.push_back(shard.path);
  // A damaged manifest in the folder of the indexes is left to IndexFolder, which refuses or
  // rebuilds it.
  if (absl::IsDataLoss(Manifest::Read(found.out).status())) return LabelsBeside{};
  ASSIGN_OR_RETURN(LabelsBeside beside, LabelsBesideShards(paths));
  options.classes = beside.labels.classes;
  for (size_t i = 0; i < beside.labels.splits.size(); ++i) {
    if (options.split.empty() && !beside.labels.splits[i].empty())
      found.shards[i].split = beside.labels.splits[i];
  }
  return beside;
}

}  // namespace

absl::StatusOr<IndexReport> IndexShards(std::span<const std::string> paths,
                                        std::span<const Format* const> formats,
                                        const IndexOptions& options, IndexProgress& progress,
                                        const std::atomic<int>& stop) {
  if (!options.split.empty() && !IsPortableSplitName(options.split)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--split ", EscapeForTerminal(options.split),
                     ": a name of letters, digits, - and _ is expected, at most 64"));
  }
  ASSIGN_OR_RETURN(FoundShards found,
                   FindShards(paths, formats, {.out = options.out, .split = options.split}));
  IndexOptions named = options;
  ASSIGN_OR_RETURN(const LabelsBeside beside, NameFromManifests(found, named));
  IndexReport report;
  report.out = found.out;
  report.others = found.others;
  report.other_files = found.other_files;
  report.hidden = found.hidden;
  ASSIGN_OR_RETURN(IndexFolder folder,
                   IndexFolder::Open(report.out, {.holds_shards = found.shards_in_out,
                                                  .overwrite = options.overwrite,
                                                  .fsync = options.fsync}));
  Indexing indexing(named, !options.classes.empty(), std::move(found), folder);
  RETURN_IF_ERROR(indexing.ScanAll(formats, progress, stop));
  report.manifest = indexing.MakeManifest();
  for (size_t i = 0; i < report.manifest.shards.size(); ++i) {
    RETURN_IF_ERROR(CheckShardBeside(beside, i, indexing.found().shards[i].path,
                                     report.manifest.shards[i].xxh3_128));
  }
  absl::Status checked = report.manifest.Check();
  if (!checked.ok()) return absl::InternalError(checked.message());
  if (!folder.writable()) {
    Differences differences = Compare(*folder.manifest(), report.manifest);
    if (!differences.lines.empty()) return RefuseDifferences(report.out, std::move(differences));
    report.manifest = *folder.manifest();
    report.unchanged = true;
  } else {
    report.warnings = indexing.Warnings();
    RETURN_IF_ERROR(folder.Publish(report.manifest));
  }
  ASSIGN_OR_RETURN(const OwnedFolder there, OwnedFolder::Open(report.out));
  ASSIGN_OR_RETURN(PackEntries entries, ListPackFolder(there));
  report.kept = std::move(entries.others);
  return report;
}

}  // namespace shardpack

#include "validators/looking/dataset_stats.h"

#include <tbb/parallel_invoke.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/core/image_info.h"
#include "formats/core/sample.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"
#include "images/probe/probe.h"
#include "readers/dataset/foreign_shard.h"
#include "validators/looking/exact_copies.h"
#include "validators/looking/folder_look.h"
#include "validators/looking/sample_rows.h"
#include "validators/looking/shard_loop.h"
#include "validators/looking/shards_with_index.h"

namespace shardpack {
namespace {

constexpr double kUnknown = -1;

std::string PixelsName(const ImageInfo& info) {
  static constexpr std::array<const char*, 8> kNames = {
      "unknown", "gray", "gray and alpha", "RGB", "RGBA", "palette", "CMYK", "YCCK"};
  const auto place = static_cast<size_t>(info.color_space);
  return absl::StrCat(kNames[place < kNames.size() ? place : 0], ", ", info.bits_per_channel,
                      info.bits_per_channel == 1 ? " bit" : " bits");
}

struct LabelCount {
  uint64_t samples = 0, image_bytes = 0;
};

// How many images, and the first of them.
struct NamedImages {
  uint64_t count = 0;
  std::set<std::pair<uint64_t, std::string>> first;  // row and key

  void Add(uint64_t row, std::string_view key) {
    ++count;
    if (key.empty() || (first.size() == StatsNote::kMostNames && row > first.rbegin()->first))
      return;
    first.emplace(row, key);
    Shorten();
  }
  void Add(const NamedImages& other) {
    count += other.count;
    first.insert(other.first.begin(), other.first.end());
    Shorten();
  }
  void Shorten() {
    while (first.size() > StatsNote::kMostNames) first.erase(std::prev(first.end()));
  }
};

// The sums over the shards of a split, or a part of them.
struct Sums {
  std::map<int64_t, LabelCount> labels;  // -1: none
  std::map<std::string, FieldStats> fields;
  std::map<std::pair<ImageFormat, uint32_t>, std::pair<ImageInfo, uint64_t>> kinds;
  uint64_t without_facts = 0;
  uint64_t progressive = 0, animated = 0, alpha = 0, turned = 0;
  uint64_t images = 0;
  NamedImages unknown, empty, truncated, tiny;
  NamedImages unread_labels;        // samples without a label that have a text for it
  uint64_t labels_not_in_text = 0;  // samples whose label has become a number
  FolderCounts folders;

  void Add(const Sums& other) {
    for (const auto& [label, count] : other.labels) {
      labels[label].samples += count.samples;
      labels[label].image_bytes += count.image_bytes;
    }
    for (const auto& [name, field] : other.fields) {
      fields[name].samples += field.samples;
      fields[name].bytes += field.bytes;
    }
    for (const auto& [kind, count] : other.kinds) {
      kinds[kind].first = count.first;
      kinds[kind].second += count.second;
    }
    folders.Add(other.folders);
    without_facts += other.without_facts;
    images += other.images;
    labels_not_in_text += other.labels_not_in_text;
    unread_labels.Add(other.unread_labels);
    unknown.Add(other.unknown);
    empty.Add(other.empty);
    truncated.Add(other.truncated);
    tiny.Add(other.tiny);
    progressive += other.progressive;
    animated += other.animated;
    alpha += other.alpha;
    turned += other.turned;
  }
  void AddImage(const ImageInfo& info) {
    progressive += info.progressive() ? 1 : 0;
    animated += info.animated() ? 1 : 0;
    alpha += info.alpha() ? 1 : 0;
    turned += info.orientation > 1 ? 1 : 0;
  }
};

class Gathering {
 public:
  // `dataset`: the shards whose index can be read.
  Gathering(const Dataset& dataset, const StatsOptions& options)
      : dataset_(dataset), options_(options), folders_(dataset.classes()) {
    for (std::vector<double>* values : {&widths_, &heights_, &aspects_, &bytes_})
      values->assign(dataset.size(), kUnknown);
  }

  // `damage`: of the shards that are not in the dataset.
  absl::StatusOr<DatasetStats> Run(DatasetDamage damage);

 private:
  absl::Status LookAtShards();
  void LookAtShard(uint32_t shard, const ShardIndex& index);
  void LookAtFields(const ShardIndex& index, Sums& sums) const;
  void LookAtLabelTexts(uint32_t shard, const ShardIndex& index, Sums& sums) const;
  void LookAtLabels(const ShardIndex& index, std::optional<size_t> image, Sums& sums) const;
  void LookAtImages(uint32_t shard, const ShardIndex& index, std::optional<size_t> image,
                    Sums& sums);
  // Of a shard without facts.
  ImageInfo ReadFacts(uint32_t shard, const ShardIndex& index, uint64_t record, size_t field,
                      std::vector<std::byte>& bytes) const;
  void FillShards();
  void FillClasses();
  void FillImages();
  void FillFields();
  absl::Status FillCopies();
  absl::Status FillFromManifest();
  void AddNotes();
  void AddNoImageNote();
  void AddClassNotes();
  absl::Status Excuse(absl::Status status);

  const Dataset& dataset_;
  const StatsOptions& options_;
  const FolderLook folders_;
  std::vector<double> widths_, heights_, aspects_, bytes_;  // by id
  std::mutex mutex_;
  std::vector<Sums> splits_;  // as stats_.splits
  std::vector<size_t> split_of_shard_;
  Sums total_;
  DatasetStats stats_;
};

// With in_spite_of_damage, what is damaged is named instead.
absl::Status Gathering::Excuse(absl::Status status) {
  if (status.ok() || !options_.in_spite_of_damage) return status;
  stats_.not_looked_at.emplace_back(status.message());
  return absl::OkStatus();
}

void Gathering::FillShards() {
  for (const DatasetShard& shard : dataset_.shards()) {
    auto split = std::find_if(stats_.splits.begin(), stats_.splits.end(),
                              [&](const SplitStats& each) { return each.name == shard.split; });
    if (split == stats_.splits.end())
      split = stats_.splits.insert(split, SplitStats{.name = shard.split});
    split_of_shard_.push_back(static_cast<size_t>(split - stats_.splits.begin()));
    const bool first = split->shards == 0;
    const auto low = [&](uint64_t was, uint64_t now) { return first ? now : std::min(was, now); };
    split->min_shard_samples = low(split->min_shard_samples, shard.records);
    split->min_shard_bytes = low(split->min_shard_bytes, shard.bytes);
    split->max_shard_samples = std::max(split->max_shard_samples, shard.records);
    split->max_shard_bytes = std::max(split->max_shard_bytes, shard.bytes);
    ++split->shards;
    split->samples += shard.records;
    split->shard_bytes += shard.bytes;
    stats_.shard_bytes += shard.bytes;
  }
  stats_.shards = dataset_.shards().size();
  splits_.resize(stats_.splits.size());
}

void Gathering::LookAtFields(const ShardIndex& index, Sums& sums) const {
  for (size_t field = 0; field < index.fields(); ++field) {
    const auto offsets = NumbersOf<uint64_t>(index, IndexColumn::kOffsets, field);
    const auto lengths = NumbersOf<uint64_t>(index, IndexColumn::kLengths, field);
    FieldStats& found = sums.fields[std::string(index.field_name(field))];
    for (size_t record = 0; record < offsets.size(); ++record) {
      if (offsets[record] == kNoField) continue;
      ++found.samples;
      found.bytes += lengths[record];
    }
  }
}

// Other tools have the label in this field, which a shard's index holds as a label where it is a
// number.
void Gathering::LookAtLabelTexts(uint32_t shard, const ShardIndex& index, Sums& sums) const {
  if (dataset_.format() != kLabelTextFormat) return;
  const auto labels = NumbersOf<int64_t>(index, IndexColumn::kLabels);
  const std::optional<size_t> text = index.FindField(kLabelTextField);
  for (uint64_t record = 0; record < labels.size(); ++record) {
    const bool has_text = text && index.has_field(record, *text);
    if (labels[record] >= 0) {
      sums.labels_not_in_text += has_text ? 0 : 1;
    } else if (has_text) {
      sums.unread_labels.Add(dataset_.shards()[shard].first_id + record, index.key(record));
    }
  }
}

void Gathering::LookAtLabels(const ShardIndex& index, std::optional<size_t> image,
                             Sums& sums) const {
  const auto labels = NumbersOf<int64_t>(index, IndexColumn::kLabels);
  std::span<const uint64_t> offsets, lengths;
  if (image) {
    offsets = NumbersOf<uint64_t>(index, IndexColumn::kOffsets, *image);
    lengths = NumbersOf<uint64_t>(index, IndexColumn::kLengths, *image);
  }
  // Labels are usually few and small.
  std::vector<LabelCount> dense(dataset_.classes().size());
  for (size_t record = 0; record < labels.size(); ++record) {
    const int64_t label = std::max<int64_t>(labels[record], -1);
    const uint64_t place = static_cast<uint64_t>(label);
    LabelCount& count = place < dense.size() ? dense[place] : sums.labels[label];
    ++count.samples;
    if (image && offsets[record] != kNoField) count.image_bytes += lengths[record];
  }
  for (size_t label = 0; label < dense.size(); ++label) {
    if (dense[label].samples > 0) sums.labels[static_cast<int64_t>(label)] = dense[label];
  }
}

ImageInfo Gathering::ReadFacts(uint32_t shard, const ShardIndex& index, uint64_t record,
                               size_t field, std::vector<std::byte>& bytes) const {
  const uint64_t length = index.field(record, field).length;
  if (length > kMaxImageFileBytes) return {};
  bytes.resize(length);
  if (!dataset_.ReadField({shard, record}, field, bytes).ok()) return {};
  // The bytes are here, so that it costs little to see whether they end too early.
  return ProbeImage(bytes, {.level = ProbeLevel::kStructure,
                            .max_pixels = std::numeric_limits<uint64_t>::max(),
                            .allow_truncated = true})
      .info;
}

void Gathering::LookAtImages(uint32_t shard, const ShardIndex& index, std::optional<size_t> image,
                             Sums& sums) {
  const auto infos = NumbersOf<ImageInfo>(index, IndexColumn::kImages);
  if (!image) {
    sums.without_facts += infos.size();
    return;
  }
  const auto offsets = NumbersOf<uint64_t>(index, IndexColumn::kOffsets, *image);
  const auto lengths = NumbersOf<uint64_t>(index, IndexColumn::kLengths, *image);
  const uint64_t first = dataset_.shards()[shard].first_id;
  std::vector<std::byte> bytes;
  // Neighbours are often of the same kind.
  std::pair<ImageInfo, uint64_t>* kind = nullptr;
  for (size_t record = 0; record < infos.size(); ++record) {
    ImageInfo info = infos[record];
    const bool there = offsets[record] != kNoField;
    sums.images += there ? 1 : 0;
    if (there) bytes_[first + record] = static_cast<double>(lengths[record]);
    if (there && info.format == ImageFormat::kUnknown && dataset_.manifest() == nullptr)
      info = ReadFacts(shard, index, record, *image, bytes);
    if (!there || info.width == 0 || info.height == 0) {
      ++sums.without_facts;
      if (there && lengths[record] == 0) sums.empty.Add(first + record, index.key(record));
      if (there && lengths[record] > 0 && info.format == ImageFormat::kUnknown)
        sums.unknown.Add(first + record, index.key(record));
      continue;
    }
    if (info.truncated()) sums.truncated.Add(first + record, index.key(record));
    if (uint64_t{info.width} * info.height < kTinyPixels)
      sums.tiny.Add(first + record, index.key(record));
    widths_[first + record] = info.width;
    heights_[first + record] = info.height;
    aspects_[first + record] = static_cast<double>(info.width) / info.height;
    const bool same = kind != nullptr && kind->first.format == info.format &&
                      kind->first.color_space == info.color_space &&
                      kind->first.bits_per_channel == info.bits_per_channel;
    if (!same) {
      const auto pixels = static_cast<uint32_t>(info.color_space) << 8 | info.bits_per_channel;
      kind = &sums.kinds[{info.format, pixels}];
      kind->first = info;
    }
    ++kind->second;
    sums.AddImage(info);
  }
}

void Gathering::LookAtShard(uint32_t shard, const ShardIndex& index) {
  Sums sums;
  const std::optional<size_t> image = index.FindField(kImageField);
  LookAtFields(index, sums);
  LookAtLabels(index, image, sums);
  LookAtLabelTexts(shard, index, sums);
  LookAtImages(shard, index, image, sums);
  sums.folders = folders_.Count(index);
  const std::lock_guard lock(mutex_);
  splits_[split_of_shard_[shard]].Add(sums);
}

absl::Status Gathering::LookAtShards() {
  return ForEachShard(dataset_, [&](uint32_t shard, const ShardIndex& index) {
    LookAtShard(shard, index);
    return absl::OkStatus();
  });
}

void Gathering::FillClasses() {
  const size_t splits = splits_.size();
  std::map<int64_t, ClassStats> classes;
  const auto row = [&](int64_t label) -> ClassStats& {
    ClassStats& found = classes[label];
    found.label = label;
    found.by_split.resize(splits);
    return found;
  };
  const std::span<const std::string> names = dataset_.classes();
  for (size_t n = 0; n < names.size(); ++n) row(static_cast<int64_t>(n)).name = names[n];
  row(-1);
  for (size_t split = 0; split < splits; ++split) {
    for (const auto& [label, count] : splits_[split].labels) {
      ClassStats& found = row(label);
      if (found.name.empty() && label >= 0 && static_cast<uint64_t>(label) >= names.size())
        found.name = absl::StrCat(label);
      found.by_split[split] += count.samples;
      found.samples += count.samples;
      found.image_bytes += count.image_bytes;
    }
  }
  for (auto& [label, found] : classes) {
    if (label < 0) {
      stats_.unlabelled = std::move(found);
    } else {
      stats_.classes.push_back(std::move(found));
    }
  }
}

void Gathering::FillImages() {
  const auto known = [](std::vector<double>& values) {
    std::erase(values, kUnknown);
    return std::span<double>(values);
  };
  for (const double bytes : bytes_)
    stats_.image_bytes += bytes == kUnknown ? 0 : static_cast<uint64_t>(bytes);
  tbb::parallel_invoke(
      [&] { stats_.width = Distribution::Of(known(widths_), Distribution::kWhole); },
      [&] { stats_.height = Distribution::Of(known(heights_), Distribution::kWhole); },
      [&] { stats_.aspect = Distribution::Of(known(aspects_), Distribution::kFraction); },
      [&] { stats_.bytes = Distribution::Of(known(bytes_), Distribution::kWhole); });
  for (const auto& [kind, count] : total_.kinds) {
    stats_.formats[std::string(ImageExtension(count.first.format))] += count.second;
    stats_.pixels[PixelsName(count.first)] += count.second;
  }
  stats_.without_facts = total_.without_facts;
  stats_.progressive = total_.progressive;
  stats_.animated = total_.animated;
  stats_.alpha = total_.alpha;
  stats_.turned = total_.turned;
  stats_.truncated = total_.truncated.count;
}

void Gathering::FillFields() {
  for (const auto& [name, field] : total_.fields)
    stats_.fields.push_back({name, field.samples, field.bytes});
  std::stable_sort(stats_.fields.begin(), stats_.fields.end(),
                   [](const FieldStats& a, const FieldStats& b) {
                     return (a.name == kImageField) > (b.name == kImageField);
                   });
}

absl::Status Gathering::FillCopies() {
  if (stats_.unread_shards > 0) return absl::OkStatus();
  const SampleRows rows({&dataset_, 1});
  ASSIGN_OR_RETURN(const std::vector<CopyGroup> groups, FindExactCopies(rows));
  stats_.copies.groups = groups.size();
  uint64_t plain = 0, without_label = 0;
  for (const CopyGroup& group : groups) {
    stats_.copies.extra += group.rows.size() - 1;
    stats_.copies.label_conflicts += group.label_conflict ? 1 : 0;
    stats_.copies.leaks += group.leak ? 1 : 0;
    if (!group.label_conflict && !group.leak) ++(group.labelled ? plain : without_label);
  }
  const auto note = [&](NoteKind kind, uint64_t count) {
    if (count > 0) stats_.notes.push_back({.kind = kind, .count = count});
  };
  note(NoteKind::kLabelConflict, stats_.copies.label_conflicts);
  note(NoteKind::kLeak, stats_.copies.leaks);
  note(NoteKind::kCopies, plain);
  note(NoteKind::kCopiesWithoutLabel, without_label);
  return absl::OkStatus();
}

absl::Status Gathering::FillFromManifest() {
  const Manifest* const manifest = dataset_.manifest();
  stats_.has_manifest = manifest != nullptr;
  if (manifest == nullptr) return absl::OkStatus();
  stats_.layout = manifest->layout;
  stats_.filtered = manifest->counts.filtered;
  stats_.pixel_stats = manifest->facts.pixel_stats;
  if (options_.folder.empty()) return absl::OkStatus();
  absl::StatusOr<SkippedList> skipped = ReadSkippedList(options_.folder, *manifest);
  if (!skipped.ok()) return Excuse(skipped.status());
  stats_.skipped = *std::move(skipped);
  return absl::OkStatus();
}

void Gathering::AddClassNotes() {
  const auto add = [&](NoteKind kind, std::string split, const auto& holds) {
    StatsNote note{.kind = kind, .split = std::move(split)};
    for (const ClassStats& each : stats_.classes) {
      if (!holds(each)) continue;
      ++note.count;
      if (note.names.size() < StatsNote::kMostNames) note.names.push_back(each.name);
    }
    if (note.count > 0) stats_.notes.push_back(std::move(note));
  };
  add(NoteKind::kEmptyClass, "", [](const ClassStats& each) { return each.samples == 0; });
  for (size_t split = 0; split < stats_.splits.size() && stats_.splits.size() > 1; ++split) {
    // A split without labels has no classes to miss.
    if (stats_.splits[split].samples == stats_.unlabelled.by_split[split]) continue;
    add(NoteKind::kMissingInSplit, stats_.splits[split].name,
        [&](const ClassStats& each) { return each.samples > 0 && each.by_split[split] == 0; });
  }
  add(NoteKind::kSingleSampleClass, "", [](const ClassStats& each) { return each.samples == 1; });
}

void Gathering::AddNoImageNote() {
  StatsNote note{.kind = NoteKind::kNoImage, .count = stats_.samples};
  for (const FieldStats& field : stats_.fields) {
    // A key of a tar ends at the first dot of a member's name, so that "v0.jpg" is a field.
    if (dataset_.format() == kLabelTextFormat && field.name.find('.') != field.name.npos &&
        note.names.size() < StatsNote::kMostNames)
      note.names.push_back(field.name);
  }
  stats_.notes.push_back(std::move(note));
}

void Gathering::AddNotes() {
  // What is missing may be in a shard that could not be read.
  if (stats_.unread_shards > 0) return;
  std::vector<uint64_t> samples;
  for (const ClassStats& each : stats_.classes) samples.push_back(each.samples);
  folders_.AddNotes(total_.folders, samples, stats_.notes);
  AddClassNotes();
  const uint64_t unlabelled = stats_.unlabelled.samples;
  // Splits without any label are meant so, as those of a challenge.
  uint64_t expected = 0;
  for (size_t split = 0; split < stats_.splits.size(); ++split) {
    const uint64_t of_split = stats_.unlabelled.by_split[split];
    expected += of_split == stats_.splits[split].samples ? of_split : 0;
  }
  if (unlabelled > expected)
    stats_.notes.push_back({.kind = NoteKind::kUnlabelled, .count = unlabelled - expected});
  const auto images = [&](NoteKind kind, const NamedImages& found) {
    if (found.count == 0) return;
    StatsNote note{.kind = kind, .count = found.count};
    for (const auto& [row, key] : found.first) note.names.push_back(key);
    stats_.notes.push_back(std::move(note));
  };
  images(NoteKind::kUnreadLabel, total_.unread_labels);
  if (total_.images == 0 && stats_.samples > 0) AddNoImageNote();
  images(NoteKind::kUnknownImage, total_.unknown);
  images(NoteKind::kEmptyImage, total_.empty);
  images(NoteKind::kTruncatedImage, total_.truncated);
  images(NoteKind::kTinyImage, total_.tiny);
  for (const FieldStats& field : stats_.fields) {
    const uint64_t became_labels = field.name == kLabelTextField ? total_.labels_not_in_text : 0;
    if (field.samples + became_labels < stats_.samples) {
      stats_.notes.push_back({.kind = NoteKind::kPartialField,
                              .count = stats_.samples - field.samples - became_labels,
                              .names = {field.name}});
    }
  }
}

absl::StatusOr<DatasetStats> Gathering::Run(DatasetDamage damage) {
  stats_.unread_shards = damage.not_looked_at.size();
  stats_.damaged_files = Reasons(damage.files);
  stats_.not_looked_at = std::move(damage.not_looked_at);
  stats_.classes_have_names = !dataset_.classes().empty();
  stats_.format = dataset_.format();
  stats_.identity = IdentityText(dataset_.identity());
  stats_.samples = dataset_.size();
  FillShards();
  RETURN_IF_ERROR(LookAtShards());
  for (const Sums& sums : splits_) total_.Add(sums);
  FillClasses();
  FillFields();
  RETURN_IF_ERROR(FillFromManifest());
  RETURN_IF_ERROR(FillCopies());
  FillImages();
  AddNotes();
  if (stats_.damaged()) RETURN_IF_ERROR(dataset_.CheckNotReplaced());
  return std::move(stats_);
}

}  // namespace

void AddDecodedNotes(const SampleRows& rows, const NearCopies& decoded, DatasetStats& stats) {
  const auto add = [&](NoteKind kind, uint64_t count, const std::vector<uint64_t>& first) {
    if (count == 0) return;
    StatsNote note{.kind = kind, .count = count};
    for (const uint64_t row : first) {
      const absl::StatusOr<RowFacts> facts = rows.Facts(row);
      if (facts.ok() && !facts->key.empty()) note.names.push_back(facts->key);
    }
    stats.notes.push_back(std::move(note));
  };
  add(NoteKind::kUndecodableImage, decoded.unread.count - decoded.damaged - decoded.huge,
      decoded.first_undecodable);
  add(NoteKind::kHugeImage, decoded.huge, decoded.first_huge);
  add(NoteKind::kPlainImage, decoded.flat, decoded.first_flat);
}

absl::StatusOr<DatasetStats> GatherStats(const Dataset& dataset, const StatsOptions& options) {
  if (dataset.is_selection())
    return absl::InvalidArgumentError("statistics are those of whole shards, not of a selection");
  DatasetDamage damage{.files = options.damaged_files, .not_looked_at = {}};
  if (!options.in_spite_of_damage) return Gathering(dataset, options).Run(std::move(damage));
  ASSIGN_OR_RETURN(const Dataset left, ShardsWithIndex(dataset, damage));
  return Gathering(left, options).Run(std::move(damage));
}

}  // namespace shardpack

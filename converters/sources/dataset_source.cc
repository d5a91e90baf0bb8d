#include "converters/sources/dataset_source.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <new>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "converters/listing/first_few.h"
#include "converters/listing/input_failure.h"
#include "converters/planning/manifest_option.h"
#include "converters/planning/record_order.h"
#include "converters/sources/list_labels.h"
#include "converters/sources/listing_rows.h"
#include "converters/sources/text_labels.h"
#include "formats/io/file.h"
#include "formats/io/relative_path.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr uint64_t kMaxRecords = std::numeric_limits<uint32_t>::max() - 1;
constexpr size_t kMaxSplits = 1000, kNamedKeys = 20, kNamedClasses = 5;
constexpr uint64_t kMaxOrderBytes = kMaxRecords * 4;

// The folder of a shard; in some formats a shard is a folder itself.
std::string FolderOf(const DatasetShard& shard) {
  std::filesystem::path folder = std::filesystem::path(shard.data_path).parent_path();
  if (folder.filename() == shard.name) folder = folder.parent_path();
  return folder.empty() ? "." : folder.string();
}

// Fills a listing record by record.
class Collector {
 public:
  Collector(const Dataset& dataset, const DatasetSourceOptions& options)
      : dataset_(dataset), options_(options), made_json_(HasMadeJson(dataset)), texts_(dataset) {
    listing.root = options.root;
    for (const std::string& name : dataset.classes()) listing.classes.push_back(name);
  }

  void AddFieldNames(const ShardIndex& index) {
    for (size_t f = 0; f < index.fields(); ++f) {
      const std::string name(index.field_name(f));
      if (name == kImageField || fields_.contains(name) || (made_json_ && name == kMetadataField))
        continue;
      fields_[name] = listing.fields.size();
      listing.fields.push_back({name, ""});
    }
  }

  // Makes room for all records, once the names of all fields are known.
  void Reserve() {
    const uint64_t rows = dataset_.size();
    listing.folder.reserve(rows);
    listing.name_ends.reserve(rows);
    listing.bytes.reserve(rows);
    listing.label.reserve(rows);
    listing.field_bytes.reserve(rows * listing.fields.size());
    listing.key_ends.reserve(rows);
    listing.split.reserve(rows);
  }

  absl::Status AddShard(uint32_t number, const ShardIndex& index) {
    const DatasetShard& shard = dataset_.shards()[number];
    std::optional<size_t> image;
    std::vector<std::optional<size_t>> columns(listing.fields.size());
    for (size_t f = 0; f < index.fields(); ++f) {
      if (index.field_name(f) == kImageField) image = f;
      const auto known = fields_.find(std::string(index.field_name(f)));
      if (known != fields_.end()) columns[known->second] = f;
    }
    if (!shard.split.empty()) {
      const auto known = std::find(listing.splits.begin(), listing.splits.end(), shard.split);
      split_ = static_cast<uint16_t>(known - listing.splits.begin());
      if (known == listing.splits.end()) listing.splits.push_back(shard.split);
      if (listing.splits.size() > kMaxSplits) {
        return absl::InvalidArgumentError(absl::StrCat("more than ", kMaxSplits, " splits"));
      }
    }
    const bool nameless = dataset_.manifest() == nullptr && dataset_.classes().empty();
    std::set<int64_t>* const labels = nameless ? &labels_of_folder_[FolderOf(shard)] : nullptr;
    texts_.CountShard(index, number, listing.rows());
    for (uint64_t record = 0; record < index.records(); ++record) {
      if (labels != nullptr && index.label(record) != kNoLabel) labels->insert(index.label(record));
      AddPath(index.source_path(record), shard.name, record);
      const bool has_image = image && index.has_field(record, *image);
      listing.bytes.push_back(has_image ? index.field(record, *image).length : 0);
      if (!has_image) {
        listing.skips.push_back(
            {listing.bytes.size() - 1, SkipReason::kNotAnImage, "the sample has no image"});
      }
      for (const std::optional<size_t>& column : columns) {
        const bool has = column && index.has_field(record, *column);
        listing.field_bytes.push_back(has ? index.field(record, *column).length : kNoPart);
      }
      RETURN_IF_ERROR(AddLabel(index.label(record), number, record));
      listing.keys.append(index.key(record));
      listing.key_ends.push_back(listing.keys.size());
      keyless_ = keyless_ || index.key(record).empty();
      listing.split.push_back(split_);
    }
    return absl::OkStatus();
  }

  // Handles samples whose .cls is a text. Rows must still be in record order.
  absl::Status SettleTextLabels() {
    if (!options_.texts_as_classes) return texts_.Settle(options_.missing, listing);
    max_label_ = -1;  // numbers are then names
    return texts_.MakeClasses(options_.classes, options_.missing, listing);
  }

  // Rows of their own, so that they count as inputs. After the rows of all records.
  void AddLostSamples() {
    for (const LostSample& sample : dataset_.lost_samples()) {
      const DatasetShard& shard = dataset_.shards()[sample.shard];
      listing.skips.push_back({listing.rows(), SkipReason::kTruncated, sample.why});
      AddPath("", shard.name, shard.records);
      listing.bytes.push_back(0);
      listing.field_bytes.resize(listing.field_bytes.size() + listing.fields.size());
      listing.label.push_back(static_cast<int32_t>(kNoLabel));
      listing.keys.append(sample.key);
      listing.key_ends.push_back(listing.keys.size());
      const auto split = std::find(listing.splits.begin(), listing.splits.end(), shard.split);
      listing.split.push_back(static_cast<uint16_t>(
          split == listing.splits.end() ? 0 : split - listing.splits.begin()));
      listing.places.resize(listing.places.size() + 1 + listing.fields.size());  // never loaded
    }
  }

  // Steps that need all records.
  absl::Status Finish() {
    listing.mtime_ns.assign(listing.rows(), 0);  // content is checked by hash
    if (keyless_) {
      listing.keys = {};
      listing.key_ends = {};
    }
    if (listing.splits.empty()) listing.split = {};
    if (dataset_.classes().empty() && max_label_ >= 0)
      listing.classes = NumberedClasses(max_label_);
    return SettleMissingParts(options_.missing, listing);
  }

  // Numeric labels of shards from several folders may mean different things; "" if they cannot.
  std::string LabelsOfSeveralFolders() const {
    std::map<int64_t, std::string> first;
    for (const auto& [folder, labels] : labels_of_folder_) {
      for (const int64_t label : labels) {
        const auto [other, fresh] = first.emplace(label, folder);
        if (fresh) continue;
        return absl::StrCat("the shards lie in ", labels_of_folder_.size(),
                            " folders, and nothing names their labels: label ", label, " of ",
                            EscapeForTerminal(other->second), " and label ", label, " of ",
                            EscapeForTerminal(folder),
                            " become one class; where they mean different things, first give each "
                            "folder names with pack index "
                            "and --classes FILE");
      }
    }
    return "";
  }

  Listing listing;

 private:
  void AddPath(std::string_view path, const std::string& shard, uint64_t record) {
    std::string made;
    if (!IsPlainPath(path)) {
      made = absl::StrCat(shard, "/", absl::Dec(record, absl::kZeroPad9));
      path = made;
    }
    const size_t slash = path.rfind('/');
    const bool nested = slash != std::string_view::npos;
    listing.folder.push_back(FolderNumber(path.substr(0, nested ? slash : 0)));
    listing.names.append(path.substr(nested ? slash + 1 : 0));
    listing.name_ends.push_back(listing.names.size());
  }

  uint32_t FolderNumber(std::string_view folder) {
    const auto known = folders_.find(absl::string_view(folder.data(), folder.size()));
    if (known != folders_.end()) return known->second;
    const auto number = static_cast<uint32_t>(listing.folders.size());
    listing.folders.emplace_back(folder);
    folders_.emplace(listing.folders.back(), number);
    return number;
  }

  absl::Status AddLabel(int64_t label, uint32_t shard, uint64_t record) {
    const auto classes = static_cast<int64_t>(dataset_.classes().size());
    const int64_t largest = classes > 0 ? classes - 1 : kMaxNumberLabel;
    if (label > largest || label < kNoLabel) {
      return absl::InvalidArgumentError(
          absl::StrCat(EscapeForTerminal(dataset_.shards()[shard].name), " record ", record,
                       " has the label ", label, "; classes from 0 to ", largest, " can be kept"));
    }
    max_label_ = std::max(max_label_, label);
    listing.label.push_back(static_cast<int32_t>(label));
    return absl::OkStatus();
  }

  const Dataset& dataset_;
  const DatasetSourceOptions& options_;
  const bool made_json_;
  TextLabels texts_;
  std::map<std::string, size_t> fields_;  // name -> index into listing.fields
  absl::flat_hash_map<std::string, uint32_t> folders_;
  uint16_t split_ = 0;
  bool keyless_ = false;
  int64_t max_label_ = -1;
  std::map<std::string, std::set<int64_t>> labels_of_folder_;
};

// The order in which the dataset was planned; empty if its records are in that order.
absl::StatusOr<std::vector<uint32_t>> PlannedOrder(const Dataset& dataset,
                                                   const std::string& root) {
  std::vector<uint32_t> none;
  const Manifest* manifest = dataset.manifest();
  if (manifest == nullptr) return none;
  const auto file =
      std::find_if(manifest->files.begin(), manifest->files.end(),
                   [](const FileEntry& entry) { return entry.name == kRecordOrderName; });
  if (file == manifest->files.end()) return none;
  ASSIGN_OR_RETURN(std::string bytes,
                   ReadWholeFile(absl::StrCat(root, "/", file->name), kMaxOrderBytes));
  if (Xxh3_128(AsBytes(bytes)) != file->xxh3_128) {
    return absl::DataLossError(absl::StrCat(EscapeForTerminal(root), "/", file->name,
                                            " differs from its hash in the manifest"));
  }
  return ParseRecordOrder(bytes, dataset.size());
}

// Says where each row's record is: rows of a plan may have other numbers.
void NotePlaces(Listing& listing) {
  const size_t parts = 1 + listing.fields.size();
  listing.places.assign(listing.rows() * parts, 0);
  for (uint64_t row = 0; row < listing.rows(); ++row) listing.places[row * parts] = row;
}

// Moves record `r` to row places[r].
void Reorder(const std::vector<uint32_t>& places, Listing& listing) {
  std::vector<uint64_t> from(places.size());
  for (uint64_t record = 0; record < places.size(); ++record) from[places[record]] = record;
  TakeRows(from, listing);
}

std::string Named(const std::vector<std::string_view>& keys) {
  std::string text;
  for (size_t i = 0; i < std::min(kNamedKeys, keys.size()); ++i)
    absl::StrAppend(&text, "\n  ", EscapeForTerminal(keys[i]));
  return keys.size() > kNamedKeys ? text + "\n  ..." : text;
}

// The classes of which `kept` has no row, though the listing has some.
std::vector<std::string> ClassesWithout(const std::vector<uint64_t>& kept, const Listing& listing) {
  std::set<int32_t> lost(listing.label.begin(), listing.label.end());
  lost.erase(static_cast<int32_t>(kNoLabel));
  for (auto row = kept.begin(); row != kept.end() && !lost.empty(); ++row)
    lost.erase(listing.label[*row]);
  std::vector<std::string> names;
  for (const int32_t label : lost) {
    const auto number = static_cast<size_t>(label);
    names.push_back(number < listing.classes.size() ? listing.classes[number]
                                                    : absl::StrCat(label));
  }
  return names;
}

// Leaves out the rows that the list names.
absl::Status LeaveOut(const KeyList& list, const Dataset& dataset, Listing& listing) {
  const auto refused = [&](const std::string& why) {
    return absl::InvalidArgumentError(
        absl::StrCat("--exclude-keys ", EscapeForTerminal(list.file), why));
  };
  const std::string identity = IdentityText(dataset.identity());
  if (!list.dataset.empty() && list.dataset != identity) {
    return refused(absl::StrCat(
        " is of the dataset ", EscapeForTerminal(list.dataset), ", and this is ", identity,
        ", where the same keys may be other samples; write the list with pack dups of this "
        "dataset"));
  }
  absl::flat_hash_map<absl::string_view, bool> found;
  for (const std::string& key : list.keys) found.emplace(key, false);
  std::vector<uint64_t> kept;
  for (uint64_t row = 0; row < listing.rows(); ++row) {
    const std::string_view key = listing.Key(row);
    const auto named = found.find(absl::string_view(key.data(), key.size()));
    if (named == found.end()) {
      kept.push_back(row);
    } else {
      named->second = true;
    }
  }
  std::vector<std::string_view> missing;
  for (const std::string& key : list.keys) {
    if (!found.at(key)) missing.push_back(key);
  }
  if (!missing.empty()) {
    return refused(absl::StrCat(": ", missing.size(), " of its ", list.keys.size(),
                                " keys name no sample of this dataset:", Named(missing)));
  }
  if (kept.empty()) return refused(" names every sample: nothing would be left to pack");
  const std::string file = absl::StrCat("--exclude-keys ", EscapeForTerminal(list.file));
  if (list.keys.empty())
    listing.warnings.push_back(absl::StrCat(file, " has no key: nothing is left out"));
  if (list.written.value_or(0) > list.keys.size()) {
    listing.warnings.push_back(absl::StrCat(file, " has ", list.keys.size(), " of the ",
                                            *list.written,
                                            " keys that pack dups wrote: the others stay"));
  }
  if (const std::vector<std::string> lost = ClassesWithout(kept, listing); !lost.empty()) {
    listing.warnings.push_back(
        absl::StrCat(file, " leaves out every sample of the class", lost.size() == 1 ? " " : "es ",
                     FirstFew(lost, kNamedClasses), "; the other classes keep their numbers"));
  }
  listing.left_out += listing.rows() - kept.size();
  TakeRows(kept, listing);
  return absl::OkStatus();
}

std::string Option(const Dataset& dataset, const std::string& name) {
  const Manifest* manifest = dataset.manifest();
  return manifest == nullptr ? "" : OptionOf(*manifest, name);
}

void InheritNumber(const Dataset& dataset, const std::string& name, uint64_t* into) {
  const std::string text = Option(dataset, name);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value > 0) *into = value;
}

// How the images were probed when they were packed; nullopt if that is unknown, or if pixels were
// changed after the probe.
std::optional<ProbeOptions> ProbedWith(const Dataset& dataset) {
  if (dataset.manifest() == nullptr || !Option(dataset, "pixel-libraries").empty())
    return std::nullopt;
  PlanOptions packed;
  for (const char* name : {"verify", "max-pixels", "allow-truncated"}) {
    const absl::StatusOr<bool> set = packed.Set(name, Option(dataset, name));
    if (!set.ok() || !*set) return std::nullopt;
  }
  return ProbeOptions{.level = packed.verify,
                      .max_pixels = packed.max_pixels,
                      .allow_truncated = packed.allow_truncated};
}

}  // namespace

std::map<std::string, std::string> DatasetSourceOptions::ToMap(const Dataset& dataset) const {
  std::map<std::string, std::string> map = {{"input-format", "dataset"},
                                            {"dataset", IdentityText(dataset.identity())}};
  if (texts_as_classes) map["label-from"] = "cls";
  // Their names are part of the listing's digest.
  if (!classes.empty()) map["classes"] = absl::StrCat(classes.size(), " names");
  if (missing != MissingPart::kSkip) map["missing-part"] = std::string(MissingPartName(missing));
  // Those that stay are part of the listing's digest.
  if (exclude && !exclude->keys.empty())
    map["exclude-keys"] = absl::StrCat(exclude->keys.size(), " keys");
  // So that extract can restore the names of the files.
  if (!SidecarSuffixes(dataset).empty()) map["sidecars"] = Option(dataset, "sidecars");
  return map;
}

DatasetSource::DatasetSource(Dataset dataset, DatasetSourceOptions options)
    : dataset_(std::move(dataset)), options_(std::move(options)), probed_(ProbedWith(dataset_)) {}

absl::StatusOr<Listing> DatasetSource::List() {
  if (dataset_.size() > kMaxRecords) {
    return absl::InvalidArgumentError(
        absl::StrCat(dataset_.size(), " samples; a plan holds at most ", kMaxRecords));
  }
  Collector collector(dataset_, options_);
  // The names of all fields come first: they are the columns of every row.
  for (const bool names : {true, false}) {
    if (!names) collector.Reserve();
    for (uint32_t shard = 0; shard < dataset_.shards().size(); ++shard) {
      ASSIGN_OR_RETURN(ShardIndex index, dataset_.index(shard));
      if (index.records() == 0) {  // no packer writes one: it was emptied, or never filled
        return absl::DataLossError(
            absl::StrCat(EscapeForTerminal(dataset_.shards()[shard].data_path),
                         " holds no sample; leave it out"));
      }
      if (names) {
        collector.AddFieldNames(index);
        continue;
      }
      RETURN_IF_ERROR(collector.AddShard(shard, index));
      listed_.fetch_add(index.records(), std::memory_order_relaxed);
    }
  }
  RETURN_IF_ERROR(collector.SettleTextLabels());
  ASSIGN_OR_RETURN(const std::vector<uint32_t> places, PlannedOrder(dataset_, options_.root));
  if (!places.empty()) Reorder(places, collector.listing);
  if (options_.exclude) RETURN_IF_ERROR(LeaveOut(*options_.exclude, dataset_, collector.listing));
  if (collector.listing.places.empty()) NotePlaces(collector.listing);
  collector.AddLostSamples();
  RETURN_IF_ERROR(collector.Finish());
  std::vector<std::string>& warnings = collector.listing.warnings;
  warnings.insert(warnings.end(), options_.warnings.begin(), options_.warnings.end());
  warnings.insert(warnings.end(), dataset_.warnings().begin(), dataset_.warnings().end());
  if (std::string warning = collector.LabelsOfSeveralFolders(); !warning.empty())
    collector.listing.warnings.push_back(std::move(warning));
  if (!dataset_.left_out().empty()) {
    std::vector<std::string> names;
    for (const std::string& name : dataset_.left_out()) names.push_back(EscapeForTerminal(name));
    collector.listing.warnings.push_back(
        absl::StrCat("left out, because a sample cannot hold it: ", absl::StrJoin(names, ", ")));
  }
  return std::move(collector.listing);
}

LoadResult DatasetSource::Load(const Listing& listing, uint64_t row, Arena& arena) const {
  const auto one = static_cast<uint32_t>(row);
  std::vector<LoadResult> results;
  LoadRows(listing, {&one, 1}, arena, results);
  return std::move(results[0]);
}

void DatasetSource::LoadRows(const Listing& listing, std::span<const uint32_t> rows, Arena& arena,
                             std::vector<LoadResult>& results) const {
  std::vector<FieldRead> reads;
  std::vector<size_t> first_reads;
  const size_t before = results.size();
  for (const uint32_t row : rows) {
    first_reads.push_back(reads.size());
    results.push_back(Prepare(listing, row, arena, reads));
    if (std::holds_alternative<absl::Status>(results.back())) break;
  }
  first_reads.push_back(reads.size());
  const std::vector<absl::Status> statuses = dataset_.ReadFields(reads);
  for (size_t i = 0; i + before < results.size(); ++i) {
    for (size_t r = first_reads[i]; r < first_reads[i + 1]; ++r) {
      if (statuses[r].ok()) continue;
      results[before + i] = InputFailure(rows[i], statuses[r], SkipReason::kBadCrc);
      break;
    }
    if (!std::holds_alternative<absl::Status>(results[before + i])) continue;
    results.resize(before + i + 1);
    return;
  }
}

LoadResult DatasetSource::Prepare(const Listing& listing, uint32_t row, Arena& arena,
                                  std::vector<FieldRead>& reads) const {
  const size_t fields = listing.fields.size();
  const uint64_t id = listing.places.empty() ? dataset_.size() : listing.places[row * (1 + fields)];
  if (id >= dataset_.size()) {
    return absl::DataLossError(
        "the plan does not fit the dataset: it names a sample that is not there");
  }
  const SampleLocation at = dataset_.Locate(id);
  const absl::StatusOr<const ShardIndex*> borrowed = dataset_.BorrowIndex(at.shard);
  if (!borrowed.ok()) return InputFailure(row, borrowed.status(), SkipReason::kBadCrc);
  const ShardIndex* const index = *borrowed;
  const std::span<std::byte> room = arena.Allocate((1 + fields) * sizeof(FieldView));
  auto* const views = reinterpret_cast<FieldView*>(room.data());
  auto* const hashes =
      reinterpret_cast<uint64_t*>(arena.Allocate((1 + fields) * sizeof(uint64_t)).data());
  const size_t first_read = reads.size();
  size_t count = 0;
  for (size_t i = 0; i <= fields; ++i) {
    if (i > 0 && !listing.HasField(row, i - 1)) continue;
    const std::string_view name =
        i == 0 ? kImageField : std::string_view(listing.fields[i - 1].name);
    const uint64_t expected =
        i == 0 ? listing.bytes[row] : listing.field_bytes[row * fields + i - 1];
    const std::optional<size_t> field = index->FindField(name);
    if (!field || !index->has_field(at.record, *field) ||
        index->field(at.record, *field).length != expected) {
      reads.resize(first_read);
      return Skip{row, SkipReason::kChanged,
                  absl::StrCat("its field ", std::string(name), " is not as it was listed")};
    }
    const std::span<std::byte> bytes = arena.Allocate(expected);
    reads.push_back({at, *field, bytes});
    new (hashes + count) uint64_t(index->hash(at.record, *field));  // as ReadFields verifies
    new (views + count++) FieldView{name, bytes};
  }
  LoadedSample loaded{.fields = {views, count}, .hashes = {hashes, count}};
  const ImageInfo image = index->image(at.record);
  if (image.format == ImageFormat::kRaw || probed_) loaded.image = image;
  if (image.format != ImageFormat::kRaw && probed_) loaded.probed = &*probed_;
  return loaded;
}

bool HasMadeJson(const Dataset& dataset) { return Option(dataset, "with-json") == "on"; }

std::map<std::string, std::string> SidecarSuffixes(const Dataset& dataset) {
  std::map<std::string, std::string> suffixes;
  const absl::StatusOr<std::vector<Sidecar>> sidecars = ParseSidecars(Option(dataset, "sidecars"));
  if (!sidecars.ok()) return suffixes;  // none were given
  for (const Sidecar& each : *sidecars) {
    if (each.suffix != each.field) suffixes[each.field] = each.suffix;
  }
  return suffixes;
}

MissingPart InheritedMissingPart(const Dataset& dataset) {
  const bool keep = Option(dataset, "missing-part") == MissingPartName(MissingPart::kKeep);
  return keep ? MissingPart::kKeep : MissingPart::kSkip;
}

void InheritOptions(const Dataset& dataset, const Format& target,
                    const std::set<std::string>& given, PlanOptions* options) {
  if (HasMadeJson(dataset)) options->with_metadata = true;
  if (!given.contains("image-field") && target.traits.image_field_follows_content) {
    options->image_field = Option(dataset, "image-field");
  }
  const std::string verify = Option(dataset, "verify");
  if (!given.contains("verify") && verify == "header") options->verify = ProbeLevel::kHeader;
  if (!given.contains("allow-truncated") && Option(dataset, "allow-truncated") == "on")
    options->allow_truncated = true;
  if (!given.contains("max-pixels")) InheritNumber(dataset, "max-pixels", &options->max_pixels);
  if (!given.contains("max-file-size"))
    InheritNumber(dataset, "max-file-size", &options->max_file_bytes);
}

}  // namespace shardpack

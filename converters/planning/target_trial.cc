#include "converters/planning/target_trial.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "converters/listing/sidecars.h"
#include "formats/io/file.h"
#include "formats/io/staged_file.h"
#include "formats/io/status_macros.h"
#include "images/probe/probe.h"

namespace shardpack {
namespace {

// A temporary folder, removed by the destructor.
class TrialFolder {
 public:
  static absl::StatusOr<TrialFolder> Create() {
    std::error_code error;
    std::string path =
        (std::filesystem::temp_directory_path(error) / "shardpack-trial-XXXXXX").string();
    if (error || ::mkdtemp(path.data()) == nullptr)
      return IoStatus("create", path, error ? error.value() : errno);
    return TrialFolder(std::move(path));
  }
  TrialFolder(TrialFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  ~TrialFolder() {
    if (!path_.empty()) (void)RemoveTree(path_);  // nothing depends on its success
  }

  // Ok, or why the format refuses this sample.
  absl::Status Try(const Format& format, const ShardSpec& spec, const SampleView& sample) {
    ASSIGN_OR_RETURN(std::unique_ptr<StagedFile> file,
                     StagedFile::Create(absl::StrCat(path_, "/", next_++)));
    ASSIGN_OR_RETURN(std::unique_ptr<ShardWriter> writer, format.create(*file, spec));
    return writer->Append(sample);
  }

 private:
  explicit TrialFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
  int next_ = 0;
};

// Enough of a JPEG for writers, which read only the first bytes.
constexpr std::string_view kImage = "\xff\xd8\xff\xd9";
constexpr ImageInfo kImageInfo = {.width = 1,
                                  .height = 1,
                                  .format = ImageFormat::kJpeg,
                                  .color_space = ColorSpace::kRgb,
                                  .channels = 3,
                                  .bits_per_channel = 8};

// Positions of samples that differ in ways a format may refuse.
std::set<uint64_t> TellingPositions(const Plan& plan) {
  std::set<uint64_t> positions = {0};
  std::optional<uint64_t> unlabelled;
  uint64_t longest = 0, max_bytes = 0;
  std::string key;
  for (uint64_t i = 0; i < plan.positions(); ++i) {
    if (!unlabelled && plan.listing().label[plan.row(i)] < 0) unlabelled = i;
    if (const size_t bytes = plan.KeyBytes(i, key); bytes > max_bytes) {
      longest = i;
      max_bytes = bytes;
    }
  }
  positions.insert(longest);
  if (unlabelled) positions.insert(*unlabelled);
  return positions;
}

// A row that has the field, preferably with a label.
std::optional<uint64_t> FirstWith(const Listing& listing, size_t field) {
  std::optional<uint64_t> first;
  auto skip = listing.skips.begin();
  for (uint64_t row = 0; row < listing.rows(); ++row) {
    while (skip != listing.skips.end() && skip->row < row) ++skip;
    if ((skip != listing.skips.end() && skip->row == row) || !listing.HasField(row, field))
      continue;
    if (listing.label[row] >= 0) return row;
    if (!first) first = row;
  }
  return first;
}

constexpr std::string_view kTrialKey = "key", kOtherName = "other";

// Samples of one small image and one field.
class FieldTrial {
 public:
  FieldTrial(const Format& format, const LayoutSpec& layout, const PlanOptions& options,
             TrialFolder& folder)
      : format_(format), layout_(layout), options_(options), folder_(folder) {}

  absl::Status Try(std::string_view name, bool labelled, bool with_field) {
    constexpr std::string_view kContent = "{}";
    const std::vector<std::string> classes = {"class"};
    const ShardSpec spec{.layout = layout_.name,
                         .image_field = options_.image_field,
                         .with_metadata = options_.with_metadata,
                         .split = "train",
                         .classes = classes,
                         .longest_key_bytes = kTrialKey.size(),
                         .max_records = 1,
                         .fields = {{std::string(kImageField), kImage.size()},
                                    {std::string(name), kContent.size()}}};
    const FieldView fields[] = {{kImageField, AsBytes(kImage)}, {name, AsBytes(kContent)}};
    const SampleView sample{.key = kTrialKey,
                            .source_path = "key.jpg",
                            .label = labelled ? 0 : kNoLabel,
                            .class_name = labelled ? "class" : "",
                            .image = kImageInfo,
                            .fields = std::span(fields).first(with_field ? 2 : 1)};
    return folder_.Try(format_, spec, sample);
  }

  // The writer's message, without the key, which is made up.
  static std::string Why(const absl::Status& refused) {
    const std::string why(refused.message()),
        prefix = absl::StrCat("key \"", std::string(kTrialKey), "\": ");
    return why.starts_with(prefix) ? why.substr(prefix.size()) : why;
  }

 private:
  const Format& format_;
  const LayoutSpec& layout_;
  const PlanOptions& options_;
  TrialFolder& folder_;
};

}  // namespace

absl::StatusOr<std::vector<RefusedField>> RefusedFields(const Format& format,
                                                        const PlanOptions& options,
                                                        const Listing& listing) {
  std::vector<RefusedField> refused;
  if (listing.fields.empty()) return refused;
  ASSIGN_OR_RETURN(TrialFolder folder, TrialFolder::Create());
  const LayoutSpec* layout = FindLayout(format, options.layout);
  if (layout == nullptr) return refused;  // the plan reports this
  const std::vector<uint64_t> gaps = CountGaps(listing);
  FieldTrial trial(format, *layout, options, folder);
  for (size_t f = 0; f < listing.fields.size(); ++f) {
    if (!layout->extra_fields) {
      refused.push_back({f, absl::StrCat("the layout ", std::string(layout->name),
                                         " holds image and label alone")});
      continue;
    }
    const std::string& name = listing.fields[f].name;
    if (options.with_metadata && name == kMetadataField) {
      refused.push_back({f, "--with-json makes a field of this name"});
      continue;
    }
    const std::optional<uint64_t> row = FirstWith(listing, f);
    if (!row) continue;
    const bool labelled = listing.label[*row] >= 0;
    absl::Status tried = trial.Try(name, labelled, /*with_field=*/true);
    const bool gap = tried.ok() && gaps[f] > 0 &&
                     !(tried = trial.Try(name, labelled, /*with_field=*/false)).ok();
    if (tried.ok()) continue;
    if (!absl::IsInvalidArgument(tried) && !absl::IsUnimplemented(tried)) return tried;
    if (gap) {
      refused.push_back(
          {f, absl::StrCat("some samples lack it, and the layout ", std::string(layout->name),
                           " holds the same fields of all; --missing-part skip leaves those "
                           "samples out, drop writes it for none")});
      continue;
    }
    refused.push_back(
        {f, absl::StrCat(EscapeForTerminal(listing.Path(*row)), ": ", trial.Why(tried))});
    const std::string& suffix = listing.fields[f].suffix;
    if (!suffix.empty() && trial.Try(kOtherName, labelled, /*with_field=*/true).ok()) {
      absl::StrAppend(&refused.back().why, "; --fields ", EscapeForTerminal(suffix), ":",
                      std::string(kOtherName),
                      " packs these files under another name, and pack extract gives theirs back");
    }
  }
  return refused;
}

absl::Status TrySamples(const Plan& plan, const SampleSource& source) {
  ASSIGN_OR_RETURN(TrialFolder folder, TrialFolder::Create());
  const Listing& listing = plan.listing();
  Arena arena;
  for (const uint64_t position : TellingPositions(plan)) {
    arena.Reset();
    const uint32_t row = plan.row(position);
    const LoadResult loaded = source.Load(listing, row, arena);
    if (const absl::Status* failed = std::get_if<absl::Status>(&loaded)) return *failed;
    const LoadedSample* sample = std::get_if<LoadedSample>(&loaded);
    if (sample == nullptr) continue;  // will be a skip
    const ProbeResult judged =
        sample->image.format == ImageFormat::kRaw
            ? ProbeResult{ProbeVerdict::kOk, sample->image}
            : ProbeImage(sample->fields[0].bytes,
                         {.level = ProbeLevel::kHeader, .max_pixels = plan.options().max_pixels});
    if (judged.verdict != ProbeVerdict::kOk) continue;
    std::string key, path;
    plan.AppendKey(position, key);
    listing.AppendPath(row, path);
    const int32_t label = listing.label[row];
    const auto after =
        std::upper_bound(plan.shards().begin(), plan.shards().end(), position,
                         [](uint64_t at, const PlannedShard& shard) { return at < shard.first; });
    const ShardSpec spec = plan.Spec(static_cast<size_t>(after - plan.shards().begin()) - 1);
    // If all images will be raw pixels of one shape, black pixels stand in for them.
    const bool raw = spec.raw_image.format == ImageFormat::kRaw;
    std::vector<FieldView> fields(sample->fields.begin(), sample->fields.end());
    const std::vector<std::byte> black(raw ? RawImageBytes(spec.raw_image) : 0);
    if (raw) fields[0].bytes = black;
    const SampleView view{
        .number = position,
        .key = key,
        .source_path = path,
        .label = label,
        .class_name = label < 0 ? std::string_view() : listing.classes[static_cast<size_t>(label)],
        .image = raw ? spec.raw_image : judged.info,
        .fields = fields};
    absl::Status tried = folder.Try(plan.format(), spec, view);
    if (tried.ok()) continue;
    return absl::Status(tried.code(),
                        absl::StrCat(std::string(plan.format().name), " (layout ",
                                     std::string(plan.layout()), ") cannot hold ",
                                     EscapeForTerminal(path), ": ", std::string(tried.message())));
  }
  return absl::OkStatus();
}

}  // namespace shardpack

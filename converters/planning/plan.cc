#include "converters/planning/plan.h"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "converters/listing/skip_answers.h"
#include "converters/planning/plan_filters.h"
#include "converters/planning/seeded_shuffle.h"
#include "converters/planning/shard_sizing.h"
#include "formats/core/manifest.h"
#include "formats/io/bytes.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr uint64_t kMaxRows = std::numeric_limits<uint32_t>::max() - 1;
constexpr uint64_t kMaxShards = 10'000'000;
constexpr size_t kRowsATask = 4096;

uint64_t AddSaturating(uint64_t a, uint64_t b) {
  return a > std::numeric_limits<uint64_t>::max() - b ? std::numeric_limits<uint64_t>::max()
                                                      : a + b;
}

}  // namespace

// Turns a listing into shards; each step is a method.
class PlanMaker {
 public:
  PlanMaker(Listing listing, const PlanOptions& options, const Format& format) {
    plan_.listing_ = std::move(listing);
    plan_.options_ = options;
    plan_.format_ = &format;
    // Set explicitly, so that splits found by the source give the same dataset as splits requested
    // by the user.
    if (!plan_.listing_.split_by_folder || !options.splits.empty()) return;
    plan_.options_.split_by = SplitBy::kDir;
    plan_.options_.source["split-by"] = "dir";
  }

  absl::StatusOr<Plan> Make() {
    for (const auto step : {&PlanMaker::CheckOptions, &PlanMaker::ChooseRows, &PlanMaker::MakeKeys,
                            &PlanMaker::OrderRows, &PlanMaker::CutShards, &PlanMaker::NameShards}) {
      RETURN_IF_ERROR((this->*step)());
    }
    if (FindLayout(format(), plan_.layout_)->key_ordered) SortShardsByKey();
    plan_.listing_digest_ = listing().ComputeDigest();
    plan_.ComputeDigest();
    return std::move(plan_);
  }

 private:
  const Listing& listing() const { return plan_.listing_; }
  const PlanOptions& options() const { return plan_.options_; }
  const Format& format() const { return *plan_.format_; }

  absl::Status CheckOptions() {
    const LayoutSpec* layout = FindLayout(format(), options().layout);
    if (layout == nullptr) {
      std::string known;
      for (const LayoutSpec& spec : format().layouts) {
        absl::StrAppend(&known, known.empty() ? "" : ", ", std::string(spec.name));
      }
      return absl::InvalidArgumentError(
          absl::StrCat("--layout ", EscapeForTerminal(options().layout), ": ",
                       std::string(format().name), " has ", known.empty() ? "no layouts" : known));
    }
    // Set explicitly, so that naming the default gives the same dataset as omitting it.
    plan_.layout_ = plan_.options_.layout = std::string(layout->name);
    if (options().shards > 0 && options().samples_per_shard > 0) {
      return absl::InvalidArgumentError(
          "--shards and --samples-per-shard cannot both be met; leave one out");
    }
    if (listing().split_by_folder && !options().splits.empty()) {
      return absl::InvalidArgumentError(
          "the top folders of the source are named like splits, and --split divides the samples "
          "once more: leave it out, give one of these folders as the source, or take them as "
          "classes with --split-by hash");
    }
    if (listing().rows() > kMaxRows) {
      return absl::InvalidArgumentError(
          absl::StrCat(listing().rows(), " inputs; a plan holds at most ", kMaxRows,
                       "; pack parts of the source one by one with --include"));
    }
    if (auto status = CheckTransformOptions(options().pixels); !status.ok()) return status;
    if (layout->fixed_shape && !RawShape(options().pixels)) {
      return absl::InvalidArgumentError(
          absl::StrCat(std::string(format().name), " ", plan_.layout_,
                       " holds pixels of one shape: give --encode raw, --color rgb or gray, and "
                       "where the images "
                       "have several sizes --resize exact, crop or pad with --size"));
    }
    if (layout->fixed_shape && !listing().fields.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(std::string(format().name), " ", plan_.layout_,
                                                     " holds pixels and labels alone, not ",
                                                     EscapeForTerminal(listing().fields[0].name)));
    }
    const bool probed = listing().images.size() == listing().rows() &&
                        listing().content_hash.size() == listing().rows();
    if (options().NeedsProbe() && !probed) {
      return absl::InvalidArgumentError(
          "--min-size, --max-aspect and --dedupe need a probed listing");
    }
    return absl::OkStatus();
  }

  absl::Status ChooseRows() {
    FilteredRows chosen = UsableRows(listing());
    const uint64_t max_record = format().traits.max_record_bytes;
    if (max_record > 0) {
      std::erase_if(chosen.rows, [&](uint32_t row) {
        const uint64_t bytes = listing().SampleBytes(row);
        if (bytes <= max_record) return false;
        plan_.skips_.push_back({row, SkipReason::kTooLarge,
                                absl::StrCat(bytes, " bytes, a record of ",
                                             std::string(format().name), " takes ", max_record)});
        return true;
      });
    }
    if (chosen.rows.empty()) return NothingUsable();
    FilterByImage(listing(), options(), chosen);
    FilterCopies(listing(), options(), chosen);
    FilterByLimit(options(), chosen);
    if (chosen.rows.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "all ", chosen.filtered,
          " inputs are left out by --min-size or --max-aspect: nothing is left to pack"));
    }
    plan_.filtered_ = chosen.filtered;
    plan_.notes_ = std::move(chosen.notes);
    rows_ = std::move(chosen.rows);
    return absl::OkStatus();
  }

  absl::Status NothingUsable() const {
    const std::vector<Skip>& skips = plan_.skips_.empty() ? listing().skips : plan_.skips_;
    if (skips.empty()) return absl::InvalidArgumentError("there is no input to pack");
    const Skip& first = skips[0];
    const std::string answer =
        first.detail.find("--") == std::string::npos ? SkipAnswers({&first, 1}) : "";
    return absl::DataLossError(absl::StrCat("none of the ", listing().rows(),
                                            " inputs can be packed; the first is ",
                                            SkipText(listing().Path(first.row), first),
                                            answer.empty() ? "" : absl::StrCat("; ", answer)));
  }

  absl::Status MakeKeys() {
    // The extensions of a sample's fields: the image's is known only once it is read; "webp" is the
    // longest.
    size_t longest = std::max<size_t>(4, options().image_field.size());
    for (const ListedField& field : listing().fields)
      longest = std::max(longest, field.name.size());
    KeyLimits limits{.max_extension_bytes = longest,
                     .max_key_bytes = FindLayout(format(), plan_.layout_)->max_key_bytes};
    if (options().key == KeyMode::kPath) {
      plan_.listing_.key_ends = {};  // requested: use keys from paths
      plan_.listing_.keys = {};
    }
    ASSIGN_OR_RETURN(KeyPlan keys,
                     PlanKeys(listing(), rows_, options().key, options().on_duplicate, limits));
    plan_.index_keys_ = keys.index_keys;
    plan_.portable_key_bytes_ = keys.portable_bytes;
    plan_.key_suffixes_ = std::move(keys.suffixes);
    plan_.skips_.insert(plan_.skips_.end(), std::make_move_iterator(keys.skips.begin()),
                        std::make_move_iterator(keys.skips.end()));
    std::sort(plan_.skips_.begin(), plan_.skips_.end(),
              [](const Skip& a, const Skip& b) { return a.row < b.row; });
    std::move(keys.notes.begin(), keys.notes.end(), std::back_inserter(plan_.notes_));
    return absl::OkStatus();
  }

  absl::Status OrderRows() {
    ASSIGN_OR_RETURN(SplitPlan splits, PlanSplits(listing(), std::move(rows_), options().splits,
                                                  options().split_by, options().seed));
    plan_.splits_ = std::move(splits.names);
    plan_.order_ = std::move(splits.rows);
    split_ends_ = std::move(splits.ends);
    plan_.MeasureKeys();  // before the shuffle, in memory order
    for (size_t split = 0; options().shuffle && split < plan_.splits_.size(); ++split) {
      const uint64_t begin = split == 0 ? 0 : split_ends_[split - 1];
      SeededRandom(options().seed, RandomStream::kShuffle, split)
          .Shuffle(std::span(plan_.order_).subspan(begin, split_ends_[split] - begin));
    }
    return absl::OkStatus();
  }

  // Container bytes before each position, and the total at the end.
  void SumBounds() {
    const uint64_t positions = plan_.positions();
    sums_.resize(positions + 1);
    sums_[0] = 0;
    for (size_t split = 0; split < plan_.splits_.size(); ++split) {
      ShardSpec spec{.layout = plan_.layout_,
                     .image_field = options().image_field,
                     .with_metadata = options().with_metadata,
                     .split = plan_.splits_[split],
                     .classes = listing().classes,
                     .longest_key_bytes = plan_.max_key_bytes_,
                     .raw_image = plan_.RawImage()};
      const uint64_t begin = split == 0 ? 0 : split_ends_[split - 1];
      tbb::parallel_for(
          tbb::blocked_range<uint64_t>(begin, split_ends_[split], kRowsATask),
          [&](const auto& range) {
            std::string key;
            std::vector<uint64_t> field_bytes;
            for (uint64_t i = range.begin(); i < range.end(); ++i) {
              const uint32_t row = plan_.order_[i];
              const int32_t label = listing().label[row];
              const std::string& folder = listing().folders[listing().folder[row]];
              field_bytes.assign(1, plan_.ImageBytes(row));
              for (size_t f = 0; f < listing().fields.size(); ++f) {
                if (listing().HasField(row, f)) field_bytes.push_back(listing().FieldBytes(row, f));
              }
              const RecordShape shape{
                  .number = i,
                  .key_bytes = plan_.KeyBytes(i, key),
                  .source_path_bytes =
                      folder.size() + (folder.empty() ? 0 : 1) + listing().Name(row).size(),
                  .class_name_bytes =
                      label < 0 ? 0 : listing().classes[static_cast<size_t>(label)].size(),
                  .has_label = label >= 0,
                  .field_bytes = field_bytes};
              sums_[i + 1] = format().record_bound(spec, shape);
            }
          });
    }
    for (uint64_t i = 0; i < positions; ++i) sums_[i + 1] = AddSaturating(sums_[i], sums_[i + 1]);
  }

  absl::Status CutShards() {
    SumBounds();
    const uint64_t overhead = format().traits.shard_overhead_bytes;
    if (options().shards > plan_.positions()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--shards ", options().shards, " is more than the ", plan_.positions(), " samples"));
    }
    if (options().shards > 0 && options().shards < plan_.splits_.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--shards ", options().shards, " is less than the ", plan_.splits_.size(),
                       " splits, each of which has shards of its own"));
    }
    const bool by_bytes = options().shards == 0 && options().samples_per_shard == 0;
    if (by_bytes && options().shard_bytes > 0 && options().shard_bytes <= overhead) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--shard-size ", options().shard_bytes, ": what ", std::string(format().name),
          " keeps beside the samples of a shard takes up to ", overhead,
          " bytes; use a larger size"));
    }
    std::vector<uint64_t> sizes;
    for (size_t i = 0; i < split_ends_.size(); ++i)
      sizes.push_back(split_ends_[i] - (i == 0 ? 0 : split_ends_[i - 1]));
    std::vector<uint64_t> shards_of(sizes.size());
    if (options().shards > 0) shards_of = DivideShards(options().shards, sizes);
    uint64_t begin = 0;
    for (size_t split = 0; split < sizes.size(); ++split) {
      const uint64_t samples = sizes[split], most = options().samples_per_shard;
      if (most > 0) shards_of[split] = samples / most + (samples % most != 0);
      const std::span<const uint64_t> sums = std::span(sums_).subspan(begin, samples + 1);
      const uint64_t capacity = options().shard_bytes > 0 ? options().shard_bytes - overhead
                                                          : AutomaticCapacity(sums, overhead);
      const std::vector<uint64_t> ends =
          by_bytes ? CutByBytes(sums, capacity) : CutEvenly(samples, shards_of[split]);
      for (size_t i = 0; i < ends.size(); ++i) {
        const uint64_t first = begin + (i == 0 ? 0 : ends[i - 1]), end = begin + ends[i];
        plan_.shards_.push_back(
            {.name = "",
             .split = static_cast<uint32_t>(split),
             .first = first,
             .count = end - first,
             .bound_bytes = AddSaturating(sums_[end] - sums_[first], overhead)});
      }
      begin = split_ends_[split];
    }
    sums_ = {};
    if (plan_.shards_.size() > kMaxShards) {
      return absl::InvalidArgumentError(absl::StrCat(plan_.shards_.size(),
                                                     " shards; a dataset has at most ", kMaxShards,
                                                     "; raise --shard-size"));
    }
    return absl::OkStatus();
  }

  absl::Status NameShards() {
    std::vector<uint32_t> totals(plan_.splits_.size(), 0), next(plan_.splits_.size(), 0);
    for (const PlannedShard& shard : plan_.shards_) ++totals[shard.split];
    std::set<std::string_view> names;
    for (PlannedShard& shard : plan_.shards_) {
      shard.name = ShardName(format(), plan_.layout_, plan_.splits_[shard.split],
                             next[shard.split]++, totals[shard.split]);
      if (!IsDatasetFileName(shard.name) || !names.insert(shard.name).second) {
        return absl::InvalidArgumentError(
            absl::StrCat("the shard name ", EscapeForTerminal(shard.name), " of split ",
                         EscapeForTerminal(plan_.splits_[shard.split]),
                         " is taken, not portable or not possible in layout ", plan_.layout_,
                         "; rename the splits"));
      }
    }
    return absl::OkStatus();
  }

  void SortShardsByKey() {
    if (plan_.index_keys_) return;  // numbers follow positions, independent of the sample
    plan_.unsorted_.resize(plan_.positions());
    tbb::parallel_for(size_t{0}, plan_.shards_.size(), [&](size_t n) {
      const PlannedShard& shard = plan_.shards_[n];
      const std::vector<uint32_t> was(
          plan_.order_.begin() + static_cast<ptrdiff_t>(shard.first),
          plan_.order_.begin() + static_cast<ptrdiff_t>(shard.first + shard.count));
      std::vector<std::pair<std::string, uint32_t>> keyed(shard.count);
      for (uint64_t i = 0; i < shard.count; ++i) {
        plan_.AppendKey(shard.first + i, keyed[i].first);
        keyed[i].second = static_cast<uint32_t>(i);
      }
      std::sort(keyed.begin(), keyed.end());
      for (uint64_t i = 0; i < shard.count; ++i) {
        plan_.order_[shard.first + i] = was[keyed[i].second];
        plan_.unsorted_[shard.first + i] = static_cast<uint32_t>(shard.first + keyed[i].second);
      }
    });
    if (std::is_sorted(plan_.unsorted_.begin(), plan_.unsorted_.end())) plan_.unsorted_ = {};
  }

  Plan plan_;
  std::vector<uint32_t> rows_;
  std::vector<uint64_t> split_ends_, sums_;
};

absl::StatusOr<Plan> Plan::Make(Listing listing, const PlanOptions& options, const Format& format) {
  return PlanMaker(std::move(listing), options, format).Make();
}

void Plan::AppendKey(uint64_t position, std::string& out) const {
  if (index_keys_) return AppendIndexKey(position, out);
  AppendPathKeyOf(row(position), out);
}

void Plan::AppendPathKeyOf(uint32_t row, std::string& out) const {
  const size_t begin = out.size();
  AppendRowKey(listing_, row, out);
  if (!key_suffixes_.empty()) {
    const auto suffix = key_suffixes_.find(row);
    if (suffix != key_suffixes_.end()) AppendKeySuffix(suffix->second, out);
  }
  if (portable_key_bytes_ == 0) return;
  const std::string_view made = std::string_view(out).substr(begin);
  if (made.size() <= portable_key_bytes_ && IsPortableKey(made)) return;
  std::string key(made);
  MakePortableKey(portable_key_bytes_, key);
  out.replace(begin, std::string::npos, key);
}

ShardSpec Plan::Spec(size_t shard) const {
  const PlannedShard& planned = shards_[shard];
  std::vector<FieldTotal> totals = {{std::string(kImageField), 0}};
  for (const ListedField& field : listing_.fields) totals.push_back({field.name, 0});
  for (uint64_t i = planned.first; i < planned.first + planned.count; ++i) {
    const uint64_t row = this->row(i), fields = listing_.fields.size();
    totals[0].max_bytes += ImageBytes(row);
    for (size_t f = 0; f < fields; ++f) totals[1 + f].max_bytes += listing_.FieldBytes(row, f);
  }
  return {.layout = layout_,
          .image_field = options_.image_field,
          .with_metadata = options_.with_metadata,
          .split = splits_[planned.split],
          .classes = listing_.classes,
          .longest_key_bytes = max_key_bytes_,
          .raw_image = RawImage(),
          .max_records = planned.count,
          .fields = std::move(totals)};
}

std::string Plan::DataFile(size_t shard) const {
  const std::string_view data_file = format_->traits.data_file;
  const std::string& name = shards_[shard].name;
  return data_file.empty() ? name : absl::StrCat(name, "/", std::string(data_file));
}

size_t Plan::KeyBytes(uint64_t position, std::string& scratch) const {
  if (!index_keys_ && portable_key_bytes_ == 0 && key_suffixes_.empty())
    return RowKeyBytes(listing_, row(position));
  scratch.clear();
  AppendKey(position, scratch);
  return scratch.size();
}

// Exact, so that the same samples under the same keys give the same bytes from any source.
void Plan::MeasureKeys() {
  std::string scratch;
  max_key_bytes_ = 0;
  // Numbers grow with their position, so the last one is the longest.
  for (uint64_t i = index_keys_ ? positions() - 1 : 0; i < positions(); ++i)
    max_key_bytes_ = std::max(max_key_bytes_, KeyBytes(i, scratch));
}

ImageInfo Plan::RawImage() const {
  const std::optional<FixedShape> shape = RawShape(options_.pixels);
  if (!shape) return {};
  return RawImageInfo(shape->height, shape->width, static_cast<uint8_t>(shape->channels));
}

uint64_t Plan::ImageBytes(uint64_t row) const {
  const std::optional<FixedShape> shape = RawShape(options_.pixels);
  return shape ? shape->bytes() : listing_.bytes[row];
}

Digest Plan::times_digest() const {
  return slices_ ? times_digest_ : TimesDigest(listing_.mtime_ns, listing_.field_mtime_ns);
}

uint64_t Plan::source_bytes() const {
  uint64_t bytes = source_bytes_;
  for (uint64_t row = 0; !slices_ && row < listing_.rows(); ++row)
    bytes += listing_.SampleBytes(row);
  return bytes;
}

Digest Plan::ShardTimes(size_t shard) const {
  if (slices_) return shard_times_[shard];
  const PlannedShard& planned = shards_[shard];
  const size_t fields = listing_.field_mtime_ns.empty() ? 0 : listing_.fields.size();
  std::vector<int64_t> times, field_times;
  for (uint64_t p = planned.first; p < planned.first + planned.count; ++p) {
    const uint64_t row = this->row(p);
    if (!listing_.mtime_ns.empty()) times.push_back(listing_.mtime_ns[row]);
    for (size_t f = 0; f < fields; ++f)
      field_times.push_back(listing_.field_mtime_ns[fields * row + f]);
  }
  return TimesDigest(times, field_times);
}

uint64_t Plan::bound_bytes() const {
  uint64_t sum = 0;
  for (const PlannedShard& shard : shards_) sum = AddSaturating(sum, shard.bound_bytes);
  return sum;
}

void Plan::ComputeDigest() {
  std::string text = absl::StrCat("shardpack plan ", kPlanVersion, "\n", std::string(format_->name),
                                  "\n", layout_, "\n", listing_digest_.ToHex(), "\n");
  if (format_->library != nullptr) absl::StrAppend(&text, format_->library(), "\n");
  for (const auto& [name, value] : options_.ToMap()) {
    absl::StrAppend(&text, name.size(), ":", name, "=", value.size(), ":", value, "\n");
  }
  digest_ = Xxh3_128(AsBytes(text));
}

}  // namespace shardpack

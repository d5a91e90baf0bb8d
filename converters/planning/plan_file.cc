// Reads the file of a plan, as plan_write.cc describes it.
#include <algorithm>
#include <concepts>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "converters/planning/plan.h"
#include "converters/planning/plan_bytes.h"
#include "formats/core/manifest.h"
#include "formats/io/bytes.h"
#include "formats/io/enum_words.h"
#include "formats/io/file.h"
#include "formats/io/relative_path.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

// Of rows of no shard, those from `least` on.
std::vector<Skip> ReadSkips(uint64_t least, uint64_t rows, PlanBytesReader& in) {
  std::vector<Skip> skips(in.Count(24));
  for (Skip& skip : skips) {
    skip.row = in.Number();
    skip.reason = static_cast<SkipReason>(in.Bounded(kSkipReasonNames.size() - 1));
    skip.detail = std::string(in.Text());
    if (!in.Check(skip.row >= least && skip.row < rows)) return {};
    least = skip.row + 1;
  }
  return skips;
}

std::vector<UnreadFolder> ReadUnreadFolders(PlanBytesReader& in) {
  std::vector<UnreadFolder> folders(in.Count(16));
  for (UnreadFolder& folder : folders) {
    folder.path = std::string(in.Text());
    folder.reason = static_cast<SkipReason>(in.Bounded(kSkipReasonNames.size() - 1));
    in.Check(!folder.path.empty());
  }
  return folders;
}

class OptionsReader {
 public:
  explicit OptionsReader(PlanBytesReader& in) : in_(in) {}

  template <typename T>
  void Option(const char*, T& value, bool = true) {
    Part(value);
  }
  void Part(bool& value) { value = in_.Flag(); }
  template <std::unsigned_integral T>
  void Part(T& value) {
    value = static_cast<T>(in_.Bounded(std::numeric_limits<T>::max()));
  }
  template <HasWords Enum>
  void Part(Enum& value) {
    value = static_cast<Enum>(in_.Bounded(WordsOf(value).size() - 1));
  }
  void Part(double& value) { value = in_.Real(); }
  void Part(std::string& text) { text = std::string(in_.Text()); }
  void Part(std::vector<std::string>& texts) { texts = in_.Texts(); }
  void Part(TransformOptions& pixels) {
    VisitMembers(pixels, *this);
    in_.Check(CheckTransformOptions(pixels).ok());
  }
  void Part(PlanOptions& options) { VisitMembers(options, *this); }
  template <typename Pairs>
  requires requires(const Pairs& pairs) { pairs.begin()->second; }
  void Part(Pairs& pairs) {
    for (uint64_t left = in_.Count(16); left > 0; --left) {
      std::pair<std::string, typename Pairs::value_type::second_type> pair;
      Part(pair.first);
      Part(pair.second);
      pairs.insert(pairs.end(), std::move(pair));
    }
  }

 private:
  PlanBytesReader& in_;
};

// A plan file is trusted like a path on the command line, but no more: nothing in it may lead out
// of the root.
bool IsFolderOfPlan(std::string_view folder) { return folder.empty() || IsPlainPath(folder); }

// A suffix becomes part of a file name.
bool IsPlainSuffix(std::string_view suffix) {
  return suffix.find('/') == std::string_view::npos && suffix.find('\0') == std::string_view::npos;
}

Digest ReadDigest(PlanBytesReader& in) {
  const uint64_t low = in.Number(), high = in.Number();
  return {.high = high, .low = low};
}

// The parts of a file whose hash fits.
struct Parts {
  std::string_view slices, header;
  uint64_t slices_offset = 0;
};

absl::Status CheckVersion(std::string_view bytes) {
  const auto version = LoadLittle<uint32_t>(bytes.data() + kPlanMagic.size());
  if (version == kPlanFileVersion) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the plan file has version ", version, ", this program reads ", kPlanFileVersion,
                   "; make a new plan with this release, or build with the one that made it"));
}

// Versions before 6 end with a hash of all bytes before it.
bool IsWholeOlderFile(std::string_view bytes) {
  const size_t hashed = bytes.size() - kPlanFooterBytes;
  const char* const footer = bytes.data() + hashed;
  return LoadLittle<uint32_t>(bytes.data() + kPlanMagic.size()) < kPlanFileVersion &&
         Xxh3_128(AsBytes(bytes.substr(0, hashed))) ==
             Digest{.high = LoadLittle<uint64_t>(footer + 8), .low = LoadLittle<uint64_t>(footer)};
}

absl::StatusOr<Parts> FindParts(std::string_view bytes) {
  if (bytes.size() < kPlanHeaderBytes + kPlanTrailerBytes || !bytes.starts_with(kPlanMagic))
    return absl::DataLossError("not a plan file");
  const char* const trailer = bytes.data() + bytes.size() - kPlanTrailerBytes;
  const auto offset = LoadLittle<uint64_t>(trailer), count = LoadLittle<uint64_t>(trailer + 8);
  const Digest digest{.high = LoadLittle<uint64_t>(trailer + 24),
                      .low = LoadLittle<uint64_t>(trailer + 16)};
  const uint64_t end = bytes.size() - kPlanTrailerBytes;
  bool fits = offset >= kPlanHeaderBytes && offset <= end && count <= (end - offset) / 16;
  if (fits) {
    DigestStream hash;
    hash.Update(AsBytes(bytes.substr(0, kPlanHeaderBytes)));
    hash.Update(AsBytes(bytes.substr(offset, bytes.size() - kPlanFooterBytes - offset)));
    fits = hash.Finish() == digest;
  }
  if (!fits && IsWholeOlderFile(bytes)) RETURN_IF_ERROR(CheckVersion(bytes));
  if (!fits) return absl::DataLossError("the plan file does not match its own hash");
  RETURN_IF_ERROR(CheckVersion(bytes));
  const uint64_t header = offset + 16 * count;
  return Parts{bytes.substr(offset, 16 * count), bytes.substr(header, end - header), offset};
}

}  // namespace

// Reads the parts one by one; they become a plan only if they are consistent.
class PlanReader {
 public:
  PlanReader(PlanFile file, const Parts& parts)
      : file_(std::move(file)), parts_(parts), in_(parts.header), digests_(parts.slices) {}

  absl::StatusOr<Plan> Read(const Plan::FindFormat& find_format) {
    ReadShape();
    const std::string format(in_.Text());
    OptionsReader(in_).Part(plan_.options_);
    ReadListing();
    plan_.splits_ = in_.Texts();
    for (const std::string& split : plan_.splits_) in_.Check(IsPortableSplitName(split));
    ReadShards();
    ReadKeysAndSkips();
    plan_.notes_ = in_.Texts();
    ReadCopies();
    const std::optional<PlanPlaces> places = PlacesOf(shape_, parts_.slices_offset);
    if (places) in_.Check(IsPadded(*places));
    in_.Check(digests_.ok() && digests_.at_end() && places && places->end == parts_.slices_offset);
    if (!in_.ok() || !in_.at_end())
      return absl::DataLossError("the plan file's parts do not fit together");
    RETURN_IF_ERROR(FindLayoutOf(format, find_format));
    Borrow(*places);
    plan_.ComputeDigest();
    return std::move(plan_);
  }

 private:
  // Files are written and replaced by these names, so they must be exactly what the format makes of
  // the splits.
  bool HasNamesOfFormat() const {
    std::vector<uint32_t> totals(plan_.splits_.size()), next(plan_.splits_.size());
    for (const PlannedShard& shard : plan_.shards_) ++totals[shard.split];
    return std::all_of(plan_.shards_.begin(), plan_.shards_.end(), [&](const PlannedShard& shard) {
      return shard.name == ShardName(*plan_.format_, plan_.layout_, plan_.splits_[shard.split],
                                     next[shard.split]++, totals[shard.split]);
    });
  }

  absl::Status FindLayoutOf(const std::string& format, const Plan::FindFormat& find_format) {
    plan_.format_ = find_format(format);
    if (plan_.format_ == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the plan is for the format ", EscapeForTerminal(format), ", which is not known here"));
    }
    const LayoutSpec* layout = FindLayout(*plan_.format_, plan_.options_.layout);
    if (layout == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("the plan is for the layout ",
                                                     EscapeForTerminal(plan_.options_.layout),
                                                     ", which ", format, " does not have here"));
    }
    plan_.layout_ = std::string(layout->name);
    if (HasNamesOfFormat()) return absl::OkStatus();
    return absl::DataLossError(
        "the plan file's shards have other names than the format gives them");
  }

  // What no hash covers is zero.
  bool IsPadded(const PlanPlaces& places) const {
    const PlanSlices all(file_, shape_, places, {});
    for (size_t i = 0; i < kPlanColumns; ++i) {
      const std::string_view column = all.All(static_cast<PlanColumn>(i));
      const uint64_t end = i + 1 < kPlanColumns ? places.offset[i + 1] : places.end;
      const uint64_t from = places.offset[i] + column.size();
      if (file_.bytes.substr(from, end - from).find_first_not_of('\0') != std::string_view::npos)
        return false;
    }
    return true;
  }

  void ReadShape() {
    shape_.rows = in_.Bounded(std::numeric_limits<uint32_t>::max() - 1);
    shape_.positions = in_.Bounded(shape_.rows);
    shape_.fields = in_.Number();
    shape_.names_bytes = in_.Number();
    shape_.keys_bytes = in_.Number();
    for (bool* flag : {&shape_.field_times, &shape_.places, &shape_.keys, &shape_.split,
                       &shape_.images, &shape_.hashes, &shape_.reordered})
      *flag = in_.Flag();
    in_.Check(shape_.keys || shape_.keys_bytes == 0);
  }

  void ReadListing() {
    Listing& listing = plan_.listing_;
    listing.root = std::string(in_.Text());
    listing.folders = in_.Texts();
    for (const std::string& folder : listing.folders) in_.Check(IsFolderOfPlan(folder));
    listing.classes = in_.Texts();
    listing.skips = ReadSkips(shape_.positions, shape_.rows, in_);
    listing.unread_folders = ReadUnreadFolders(in_);
    for (uint64_t left = in_.Count(16); left > 0; --left) {
      std::string extension(in_.Text());
      listing.ignored[std::move(extension)] = in_.Number();
    }
    listing.left_out = in_.Number();
    for (uint64_t left = shape_.fields; left > 0 && in_.ok(); --left) {
      ListedField field{std::string(in_.Text()), std::string(in_.Text())};
      in_.Check(!field.name.empty() && IsPlainSuffix(field.suffix));
      listing.fields.push_back(std::move(field));
    }
    const bool has_content = in_.Flag();
    const Digest content = ReadDigest(in_);
    if (has_content) listing.content_digest = content;
    in_.Check(has_content || content == Digest{});
    listing.splits = in_.Texts();
    in_.Check(shape_.split == !listing.splits.empty());
    plan_.listing_digest_ = ReadDigest(in_);
    plan_.times_digest_ = ReadDigest(in_);
    plan_.source_bytes_ = in_.Number();
  }

  void ReadShards() {
    plan_.shards_.resize(in_.Count(48));
    uint64_t next = 0;
    std::vector<std::string_view> names;
    for (PlannedShard& shard : plan_.shards_) {
      shard.name = std::string(in_.Text());
      shard.split = static_cast<uint32_t>(in_.Bounded(std::numeric_limits<uint32_t>::max()));
      shard.first = next;
      shard.count = in_.Bounded(shape_.rows);
      shard.bound_bytes = in_.Number();
      plan_.shard_times_.push_back(ReadDigest(in_));
      next += shard.count;
      in_.Check(shard.count > 0 && shard.split < plan_.splits_.size() &&
                IsDatasetFileName(shard.name));
      if (!in_.ok()) return;
      names.push_back(shard.name);
      slices_.push_back({shard.first, shard.count, ReadDigest(digests_)});
    }
    std::sort(names.begin(), names.end());
    in_.Check(std::adjacent_find(names.begin(), names.end()) == names.end());
    in_.Check(next > 0 && next == shape_.positions);
    slices_.push_back({next, shape_.rows - shape_.positions, ReadDigest(digests_)});
  }

  void ReadKeysAndSkips() {
    const uint64_t rows = shape_.rows;
    plan_.index_keys_ = in_.Flag();
    plan_.portable_key_bytes_ = in_.Bounded(kMaxPortableBytes);
    in_.Check(plan_.portable_key_bytes_ == 0 || plan_.portable_key_bytes_ >= kMinPortableBytes);
    plan_.max_key_bytes_ = in_.Number();
    for (uint64_t left = in_.Count(16); left > 0 && in_.ok(); --left) {
      const uint64_t row = in_.Number();
      const uint64_t n = in_.Bounded(std::numeric_limits<uint32_t>::max());
      if (in_.Check(row < rows))
        plan_.key_suffixes_[static_cast<uint32_t>(row)] = static_cast<uint32_t>(n);
    }
    plan_.filtered_ = in_.Bounded(rows);
    plan_.skips_ = ReadSkips(shape_.positions, rows, in_);
    // Law 4: every row is packed, filtered or skipped.
    in_.Check(shape_.positions + plan_.filtered_ + plan_.skips_.size() +
                  plan_.listing_.skips.size() ==
              rows);
  }

  void ReadCopies() {
    for (uint64_t left = in_.Count(16); left > 0 && in_.ok(); --left) {
      const uint64_t row = in_.Number(), original = in_.Number();
      if (in_.Check(row < shape_.rows && original < shape_.rows))
        plan_.copies_.push_back({static_cast<uint32_t>(row), static_cast<uint32_t>(original)});
    }
  }

  template <typename T>
  void Lend(PlanColumn column, Column<T>& into) const {
    if (places_.row_bytes[static_cast<size_t>(column)] > 0)
      into = Column<T>::Borrow(plan_.slices_->Rows<T>(column));
  }

  void Borrow(const PlanPlaces& places) {
    places_ = places;
    plan_.slices_ =
        std::make_shared<const PlanSlices>(std::move(file_), shape_, places, std::move(slices_));
    Listing& listing = plan_.listing_;
    Lend(PlanColumn::kSourceRow, plan_.source_rows_);
    Lend(PlanColumn::kFolder, listing.folder);
    Lend(PlanColumn::kNameEnd, listing.name_ends);
    Lend(PlanColumn::kBytes, listing.bytes);
    Lend(PlanColumn::kMtime, listing.mtime_ns);
    Lend(PlanColumn::kLabel, listing.label);
    Lend(PlanColumn::kFieldBytes, listing.field_bytes);
    Lend(PlanColumn::kFieldMtime, listing.field_mtime_ns);
    Lend(PlanColumn::kPlace, listing.places);
    Lend(PlanColumn::kKeyEnd, listing.key_ends);
    Lend(PlanColumn::kSplit, listing.split);
    Lend(PlanColumn::kImage, listing.images);
    Lend(PlanColumn::kContentHash, listing.content_hash);
    Lend(PlanColumn::kUnsorted, plan_.unsorted_);
    listing.names = TextColumn::Borrow(plan_.slices_->All(PlanColumn::kNames));
    listing.keys = TextColumn::Borrow(plan_.slices_->All(PlanColumn::kKeys));
  }

  PlanFile file_;
  const Parts parts_;
  PlanBytesReader in_, digests_;
  PlanShape shape_;
  PlanPlaces places_;
  std::vector<PlanSlice> slices_;
  Plan plan_;
};

absl::StatusOr<Plan> Plan::Open(PlanFile file, const FindFormat& find_format) {
  ASSIGN_OR_RETURN(const Parts parts, FindParts(file.bytes));
  return PlanReader(std::move(file), parts).Read(find_format);
}

absl::StatusOr<Plan> Plan::FromBytes(std::string_view bytes, const FindFormat& find_format) {
  PlanFile file{.owner = nullptr, .bytes = bytes, .path = ""};
  if (reinterpret_cast<uintptr_t>(bytes.data()) % alignof(uint64_t) !=
      0) {  // columns are used in place
    const auto copy = std::make_shared<const std::vector<char>>(bytes.begin(), bytes.end());
    file = {copy, std::string_view(copy->data(), copy->size()), ""};
  }
  ASSIGN_OR_RETURN(const Plan plan, Open(std::move(file), find_format));
  return plan.Whole();
}

// Nothing in a row may lead out of the root, or out of the plan.
bool Plan::RowsFit(size_t slice) const {
  const PlanSlice& part = slices_->slices()[slice];
  const Listing& rows = listing_;
  const auto ends_fit = [](const Column<uint64_t>& ends, uint64_t row, size_t all) {
    return ends.empty() || ((row == 0 ? 0 : ends[row - 1]) <= ends[row] && ends[row] <= all);
  };
  std::string scratch;
  bool fits = true;
  for (uint64_t row = part.first; row < part.first + part.count && fits; ++row) {
    const int64_t label = rows.label[row];
    fits = source_rows_[row] < rows.rows() && rows.folder[row] < rows.folders.size() &&
           label >= -1 && label < static_cast<int64_t>(rows.classes.size()) &&
           ends_fit(rows.name_ends, row, rows.names.size()) &&
           ends_fit(rows.key_ends, row, rows.keys.size()) && IsPlainName(rows.Name(row)) &&
           (rows.split.empty() || rows.split[row] < rows.splits.size());
    if (!fits || slice == shards_.size()) continue;
    fits = unsorted_position(row) < positions() && KeyBytes(row, scratch) <= max_key_bytes_;
  }
  return fits;
}

absl::Status Plan::CheckPart(size_t slice) const {
  if (!slices_ || slices_->good(slice)) return absl::OkStatus();
  absl::Status status = absl::OkStatus();
  if (slices_->Compute(slice) != slices_->slices()[slice].digest) {
    status = absl::DataLossError("does not match its own hash");
  } else if (!RowsFit(slice)) {
    status = absl::DataLossError("has rows that do not fit together");
  }
  if (status.ok()) {
    slices_->SetGood(slice);
    return status;
  }
  return absl::DataLossError(absl::StrCat(
      "its slice of ",
      slice < shards_.size() ? absl::StrCat("shard ", slice, " (", shards_[slice].name, ")")
                             : std::string("the inputs of no shard"),
      " ", std::string(status.message())));
}

absl::Status Plan::CheckSlice(size_t shard) const {
  const absl::Status status = CheckPart(shard);
  if (status.ok()) return status;
  const std::string& path = slices_->file().path;
  return absl::DataLossError(
      absl::StrCat(path.empty() ? "the plan" : EscapeForTerminal(path),
                   " is damaged: ", std::string(status.message()),
                   "; take it from a copy, or make it again with the same pack plan command"));
}

absl::Status Plan::CheckAllSlices(const std::function<absl::Status()>& before_each) const {
  const size_t slices = slices_ ? slices_->slices().size() : 0;
  for (size_t n = 0; n < slices; ++n) {
    if (before_each) RETURN_IF_ERROR(before_each());
    const bool was_good = slices_->good(n);
    RETURN_IF_ERROR(CheckSlice(n));
    if (!was_good) slices_->Drop(n);  // else a worker's memory would be that of the whole plan
  }
  return absl::OkStatus();
}

bool Plan::HasRows() const {
  if (!slices_) return true;
  size_t slice = 0;
  while (slice + 1 < slices_->slices().size() && slices_->slices()[slice].count == 0) ++slice;
  return CheckPart(slice).ok();
}

void Plan::DropSlice(size_t shard) const {
  if (slices_) slices_->Drop(shard);
}

namespace {

template <typename T>
void Place(const Column<T>& from, std::span<const uint32_t> places, uint64_t values,
           Column<T>& into) {
  std::vector<T> placed(from.size());
  for (size_t row = 0; row < places.size() && !from.empty(); ++row) {
    std::copy_n(from.begin() + row * values, values,
                placed.begin() + static_cast<ptrdiff_t>(places[row] * values));
  }
  into = std::move(placed);
}

// `row_at[n]`: the row of `from` that becomes row n.
void PlaceTexts(const TextColumn& from, const Column<uint64_t>& ends,
                std::span<const uint32_t> row_at, TextColumn& into, Column<uint64_t>& into_ends) {
  const std::string_view texts = from;
  std::string placed;
  placed.reserve(texts.size());
  std::vector<uint64_t> placed_ends;
  placed_ends.reserve(ends.size());
  for (const uint32_t row : row_at) {
    if (ends.empty()) break;
    const uint64_t begin = row == 0 ? 0 : ends[row - 1];
    placed.append(texts.substr(begin, ends[row] - begin));
    placed_ends.push_back(placed.size());
  }
  into = std::move(placed);
  into_ends = std::move(placed_ends);
}

}  // namespace

absl::StatusOr<Plan> Plan::Whole() const {
  if (!slices_) return *this;
  for (size_t n = 0; n < slices_->slices().size(); ++n) RETURN_IF_ERROR(CheckPart(n));
  const uint64_t rows = listing_.rows();
  constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  std::vector<uint32_t> row_at(rows, kNone);
  for (uint32_t row = 0; row < rows; ++row) {
    if (std::exchange(row_at[source_rows_[row]], row) != kNone)
      return absl::DataLossError("the plan file has a row twice");
  }
  std::vector<bool> taken(positions(), false);
  for (const uint32_t place : unsorted_) {
    if (taken[place]) return absl::DataLossError("the plan file has a place in the order twice");
    taken[place] = true;
  }
  Plan whole = *this;
  whole.slices_ = nullptr;
  whole.source_rows_ = {};
  whole.shard_times_ = {};
  whole.copies_ = {};
  whole.source_bytes_ = 0;
  const std::span<const uint32_t> places = source_rows_;
  const size_t fields = listing_.fields.size();
  Listing& into = whole.listing_;
  Place(listing_.folder, places, 1, into.folder);
  Place(listing_.bytes, places, 1, into.bytes);
  Place(listing_.mtime_ns, places, 1, into.mtime_ns);
  Place(listing_.label, places, 1, into.label);
  Place(listing_.field_bytes, places, fields, into.field_bytes);
  Place(listing_.field_mtime_ns, places, fields, into.field_mtime_ns);
  Place(listing_.places, places, 1 + fields, into.places);
  Place(listing_.split, places, 1, into.split);
  Place(listing_.images, places, 1, into.images);
  Place(listing_.content_hash, places, 1, into.content_hash);
  PlaceTexts(listing_.names, listing_.name_ends, row_at, into.names, into.name_ends);
  PlaceTexts(listing_.keys, listing_.key_ends, row_at, into.keys, into.key_ends);
  whole.order_.assign(places.begin(), places.begin() + static_cast<ptrdiff_t>(positions()));
  whole.unsorted_ = std::vector<uint32_t>(unsorted_.begin(), unsorted_.end());
  whole.key_suffixes_.clear();
  for (const auto& [row, n] : key_suffixes_) whole.key_suffixes_[places[row]] = n;
  for (std::vector<Skip>* skips : {&into.skips, &whole.skips_}) {
    for (Skip& skip : *skips) skip.row = places[skip.row];
    if (!std::is_sorted(skips->begin(), skips->end(),
                        [](const Skip& a, const Skip& b) { return a.row < b.row; }))
      return absl::DataLossError("the plan file's rows are not in order");
  }
  whole.MeasureKeys();
  if (into.ComputeDigest() != listing_digest_)
    return absl::DataLossError("the plan file's rows are not those that were planned");
  return whole;
}

}  // namespace shardpack

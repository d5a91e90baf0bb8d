// Reads and writes the bytes of a plan, for `.pack/plan` and for workers on other machines. All
// integers are little-endian:
//
//   "SPKPLAN1", u32 version, u32 0, parts (plan_bytes.h), XXH3-128 of all before it (low word, high
//   word)
#include <algorithm>
#include <concepts>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "converters/planning/plan.h"
#include "converters/planning/plan_bytes.h"
#include "formats/core/manifest.h"
#include "formats/io/bytes.h"
#include "formats/io/enum_words.h"
#include "formats/io/file.h"

namespace shardpack {
namespace {

void WriteSkips(const std::vector<Skip>& skips, PlanBytesWriter& out) {
  out.Number(skips.size());
  for (const Skip& skip : skips) {
    out.Number(skip.row);
    out.Number(static_cast<uint64_t>(skip.reason));
    out.Text(skip.detail);
  }
}

std::vector<Skip> ReadSkips(uint64_t rows, PlanBytesReader& in) {
  std::vector<Skip> skips(in.Count(24));
  uint64_t least = 0;
  for (Skip& skip : skips) {
    skip.row = in.Number();
    skip.reason = static_cast<SkipReason>(in.Bounded(kSkipReasonNames.size() - 1));
    skip.detail = std::string(in.Text());
    if (!in.Check(skip.row >= least && skip.row < rows)) return {};
    least = skip.row + 1;
  }
  return skips;
}

void WriteUnreadFolders(const std::vector<UnreadFolder>& folders, PlanBytesWriter& out) {
  out.Number(folders.size());
  for (const UnreadFolder& folder : folders) {
    out.Text(folder.path);
    out.Number(static_cast<uint64_t>(folder.reason));
  }
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

// Writes each member of a description as a number or text.
class OptionsWriter {
 public:
  explicit OptionsWriter(PlanBytesWriter& out) : out_(out) {}

  template <typename T>
  void Option(const char*, const T& value, bool = true) {
    Part(value);
  }
  template <typename T>
  requires std::unsigned_integral<T> || HasWords<T>
  void Part(T value) { out_.Number(static_cast<uint64_t>(value)); }
  void Part(double value) { out_.Real(value); }
  void Part(const std::string& text) { out_.Text(text); }
  void Part(const std::vector<std::string>& texts) { out_.Texts(texts); }
  void Part(const TransformOptions& pixels) { VisitMembers(pixels, *this); }
  void Part(const PlanOptions& options) { VisitMembers(options, *this); }
  // For pairs: splits and the options of the source.
  template <typename Pairs>
  requires requires(const Pairs& pairs) { pairs.begin()->second; }
  void Part(const Pairs& pairs) {
    out_.Number(pairs.size());
    for (const auto& [name, value] : pairs) {
      Part(name);
      Part(value);
    }
  }

 private:
  PlanBytesWriter& out_;
};

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

void WriteLengths(const std::vector<uint64_t>& ends, PlanBytesWriter& out) {
  out.Column(ends.size(), [&](uint64_t i) { return ends[i] - (i == 0 ? 0 : ends[i - 1]); });
}

// Writes the columns that only some sources fill.
void WriteGiven(const Listing& listing, PlanBytesWriter& out) {
  out.Number(listing.fields.size());
  for (const ListedField& field : listing.fields) {
    out.Text(field.name);
    out.Text(field.suffix);
  }
  out.Column(listing.field_bytes.size(), [&](uint64_t i) { return listing.field_bytes[i]; });
  out.Raw(listing.field_mtime_ns);
  out.Column(listing.places.size(), [&](uint64_t i) { return listing.places[i]; });
  const Digest content = listing.content_digest.value_or(Digest{});
  out.Number(listing.content_digest.has_value());
  out.Number(content.high);
  out.Number(content.low);
  WriteLengths(listing.key_ends, out);
  out.Text(listing.keys);
  out.Texts(listing.splits);
  out.Column(listing.split.size(), [&](uint64_t i) { return listing.split[i]; });
}

void WriteListing(const Listing& listing, PlanBytesWriter& out) {
  const uint64_t rows = listing.rows();
  out.Text(listing.root);
  out.Texts(listing.folders);
  out.Column(rows, [&](uint64_t i) { return listing.folder[i]; });
  WriteLengths(listing.name_ends, out);
  out.Text(listing.names);
  out.Column(rows, [&](uint64_t i) { return listing.bytes[i]; });
  out.Raw(listing.mtime_ns);
  out.Column(rows, [&](uint64_t i) { return static_cast<uint32_t>(listing.label[i] + 1); });
  out.Texts(listing.classes);
  WriteSkips(listing.skips, out);
  WriteUnreadFolders(listing.unread_folders, out);
  out.Number(listing.ignored.size());
  for (const auto& [extension, count] : listing.ignored) {
    out.Text(extension);
    out.Number(count);
  }
  out.Number(listing.left_out);
  WriteGiven(listing, out);
  out.Raw(listing.images);
  out.Raw(listing.content_hash);
}

// A plan file is trusted like a path on the command line, but no more: nothing in it may lead out
// of the root.
bool IsPlainName(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

bool IsPlainFolder(std::string_view folder) {
  if (folder.empty()) return true;
  for (;;) {
    const size_t slash = folder.find('/');
    if (!IsPlainName(folder.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    folder.remove_prefix(slash + 1);
  }
}

// A suffix becomes part of a file name.
bool IsPlainSuffix(std::string_view suffix) {
  return suffix.find('/') == std::string_view::npos && suffix.find('\0') == std::string_view::npos;
}

std::vector<uint64_t> ReadEnds(PlanBytesReader& in) {
  auto ends = in.Column<uint64_t>(std::numeric_limits<uint32_t>::max());
  uint64_t end = 0;
  for (uint64_t& each : ends) each = end += each;
  return ends;
}

void ReadGiven(uint64_t rows, PlanBytesReader& in, Listing& listing) {
  listing.fields.resize(in.Count(16));
  for (ListedField& field : listing.fields) {
    field.name = std::string(in.Text());
    field.suffix = std::string(in.Text());
    in.Check(!field.name.empty() && IsPlainSuffix(field.suffix));
  }
  constexpr uint64_t kAny = std::numeric_limits<uint64_t>::max();
  const uint64_t fields = listing.fields.size();
  listing.field_bytes = in.Column<uint64_t>(kAny);
  listing.field_mtime_ns = in.Raw<int64_t>();
  listing.places = in.Column<uint64_t>(kAny);
  const bool has_content = in.Flag();
  const uint64_t high = in.Number(), low = in.Number();
  if (has_content) listing.content_digest = Digest{.high = high, .low = low};
  in.Check(has_content || (high == 0 && low == 0));
  listing.key_ends = ReadEnds(in);
  listing.keys = std::string(in.Text());
  listing.splits = in.Texts();
  listing.split = in.Column<uint16_t>(listing.splits.empty() ? 0 : listing.splits.size() - 1);
  const auto fits = [](uint64_t size, uint64_t lines, uint64_t columns) {
    return columns == 0 ? size == 0 : size % columns == 0 && size / columns == lines;
  };
  in.Check(fits(listing.field_bytes.size(), rows, fields));
  in.Check(listing.field_mtime_ns.empty() || fits(listing.field_mtime_ns.size(), rows, fields));
  in.Check(listing.places.empty() || fits(listing.places.size(), rows, 1 + fields));
  in.Check(listing.key_ends.empty()
               ? listing.keys.empty()
               : listing.key_ends.size() == rows && listing.key_ends.back() == listing.keys.size());
  in.Check(listing.splits.empty() ? listing.split.empty() : listing.split.size() == rows);
}

Listing ReadListing(PlanBytesReader& in) {
  Listing listing;
  listing.root = std::string(in.Text());
  listing.folders = in.Texts();
  for (const std::string& folder : listing.folders) in.Check(IsPlainFolder(folder));
  listing.folder = in.Column<uint32_t>(std::numeric_limits<uint32_t>::max());
  const uint64_t rows = listing.folder.size();
  for (const uint32_t folder : listing.folder) in.Check(folder < listing.folders.size());
  listing.name_ends = ReadEnds(in);
  listing.names = std::string(in.Text());
  if (!in.Check(listing.name_ends.size() == rows &&
                (rows == 0 ? 0 : listing.name_ends.back()) == listing.names.size())) {
    return {};
  }
  listing.bytes = in.Column<uint64_t>(std::numeric_limits<uint64_t>::max());
  listing.mtime_ns = in.Raw<int64_t>();
  const auto labels = in.Column<uint32_t>(uint32_t{1} << 31);
  listing.classes = in.Texts();
  in.Check(listing.bytes.size() == rows && listing.mtime_ns.size() == rows &&
           labels.size() == rows);
  if (!in.ok()) return {};
  listing.label.reserve(rows);
  for (uint64_t row = 0; row < rows; ++row) {
    in.Check(labels[row] <= listing.classes.size() && IsPlainName(listing.Name(row)));
    listing.label.push_back(static_cast<int32_t>(labels[row]) - 1);
  }
  listing.skips = ReadSkips(rows, in);
  listing.unread_folders = ReadUnreadFolders(in);
  for (uint64_t left = in.Count(16); left > 0; --left) {
    std::string extension(in.Text());
    listing.ignored[std::move(extension)] = in.Number();
  }
  listing.left_out = in.Number();
  ReadGiven(rows, in, listing);
  listing.images = in.Raw<ImageInfo>();
  listing.content_hash = in.Raw<uint64_t>();
  in.Check((listing.images.empty() || listing.images.size() == rows) &&
           (listing.content_hash.empty() || listing.content_hash.size() == rows));
  return listing;
}

}  // namespace

std::string Plan::ToBytes() const {
  constexpr size_t kUsualRowBytes = 32;  // beside names and keys
  PlanBytesWriter out(kPlanVersion, listing_.names.size() + listing_.keys.size() +
                                        listing_.rows() * kUsualRowBytes);
  out.Text(format_->name);
  OptionsWriter(out).Part(options_);
  WriteListing(listing_, out);
  out.Texts(splits_);
  out.Number(shards_.size());
  for (const PlannedShard& shard : shards_) {
    out.Text(shard.name);
    out.Number(shard.split);
    out.Number(shard.count);
    out.Number(shard.bound_bytes);
  }
  out.Column(order_.size(), [&](uint64_t i) { return order_[i]; });
  out.Column(unsorted_.size(), [&](uint64_t i) { return unsorted_[i]; });
  out.Number(index_keys_);
  out.Number(portable_key_bytes_);
  out.Number(key_suffixes_.size());
  for (const auto& [row, n] : key_suffixes_) {
    out.Number(row);
    out.Number(n);
  }
  out.Number(filtered_);
  WriteSkips(skips_, out);
  out.Texts(notes_);
  return out.Finish();
}

// Reads the parts one by one; they become a plan only if they are consistent.
class PlanReader {
 public:
  explicit PlanReader(std::string_view body) : in_(body) {}

  absl::StatusOr<Plan> Read(const std::function<const Format*(std::string_view)>& find_format) {
    const std::string format(in_.Text());
    OptionsReader(in_).Part(plan_.options_);
    plan_.listing_ = ReadListing(in_);
    plan_.splits_ = in_.Texts();
    for (const std::string& split : plan_.splits_) in_.Check(IsPortableSplitName(split));
    const uint64_t positions = ReadShards();
    ReadOrder(positions);
    ReadKeysAndSkips();
    plan_.notes_ = in_.Texts();
    if (!in_.ok() || !in_.at_end())
      return absl::DataLossError("the plan file's parts do not fit together");
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
    if (!HasNamesOfFormat())
      return absl::DataLossError(
          "the plan file's shards have other names than the format gives them");
    plan_.MeasureKeys();
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

  // Returns the number of positions.
  uint64_t ReadShards() {
    plan_.shards_.resize(in_.Count(32));
    uint64_t next = 0;
    std::set<std::string_view> names;
    for (PlannedShard& shard : plan_.shards_) {
      shard.name = std::string(in_.Text());
      shard.split = static_cast<uint32_t>(in_.Bounded(std::numeric_limits<uint32_t>::max()));
      shard.first = next;
      shard.count = in_.Bounded(plan_.listing_.rows());
      shard.bound_bytes = in_.Number();
      next += shard.count;
      in_.Check(shard.count > 0 && shard.split < plan_.splits_.size() &&
                IsDatasetFileName(shard.name) && names.insert(shard.name).second);
      if (!in_.ok()) return 0;
    }
    in_.Check(next > 0);
    return next;
  }

  void ReadOrder(uint64_t positions) {
    const uint64_t rows = plan_.listing_.rows();
    plan_.order_ = in_.Column<uint32_t>(std::numeric_limits<uint32_t>::max());
    if (!in_.Check(plan_.order_.size() == positions && positions <= rows)) return;
    packed_.assign(rows, false);
    for (const uint32_t row : plan_.order_) {
      if (!in_.Check(row < rows && !packed_[row])) return;
      packed_[row] = true;
    }
    for (const Skip& skip : plan_.listing_.skips) in_.Check(!packed_[skip.row]);
    plan_.unsorted_ = in_.Column<uint32_t>(std::numeric_limits<uint32_t>::max());
    if (plan_.unsorted_.empty() || !in_.Check(plan_.unsorted_.size() == positions)) return;
    std::vector<bool> taken(positions, false);
    for (const uint32_t place : plan_.unsorted_) {
      if (!in_.Check(place < positions && !taken[place])) return;
      taken[place] = true;
    }
  }

  void ReadKeysAndSkips() {
    const uint64_t rows = plan_.listing_.rows();
    plan_.index_keys_ = in_.Flag();
    plan_.portable_key_bytes_ = in_.Bounded(kMaxPortableBytes);
    in_.Check(plan_.portable_key_bytes_ == 0 || plan_.portable_key_bytes_ >= kMinPortableBytes);
    for (uint64_t left = in_.Count(16); left > 0 && in_.ok(); --left) {
      const uint64_t row = in_.Number();
      const uint64_t n = in_.Bounded(std::numeric_limits<uint32_t>::max());
      if (in_.Check(row < rows))
        plan_.key_suffixes_[static_cast<uint32_t>(row)] = static_cast<uint32_t>(n);
    }
    plan_.filtered_ = in_.Bounded(rows);
    plan_.skips_ = ReadSkips(rows, in_);
    // Law 4: every row is packed, filtered or skipped.
    in_.Check(plan_.positions() + plan_.filtered_ + plan_.skips_.size() +
                  plan_.listing_.skips.size() ==
              rows);
    if (!in_.ok()) return;
    for (const Skip& skip : plan_.skips_) in_.Check(!packed_[skip.row]);
  }

  PlanBytesReader in_;
  Plan plan_;
  std::vector<bool> packed_;
};

absl::StatusOr<Plan> Plan::FromBytes(
    std::string_view bytes, const std::function<const Format*(std::string_view)>& find_format) {
  if (bytes.size() < kPlanHeaderBytes + kPlanFooterBytes || !bytes.starts_with(kPlanMagic)) {
    return absl::DataLossError("not a plan file");
  }
  const std::string_view hashed = bytes.substr(0, bytes.size() - kPlanFooterBytes);
  const char* const footer = bytes.data() + hashed.size();
  const Digest digest{.high = LoadLittle<uint64_t>(footer + 8),
                      .low = LoadLittle<uint64_t>(footer)};
  if (Xxh3_128(AsBytes(hashed)) != digest)
    return absl::DataLossError("the plan file does not match its own hash");
  const auto version = LoadLittle<uint32_t>(bytes.data() + kPlanMagic.size());
  if (version != kPlanVersion) {
    return absl::InvalidArgumentError(absl::StrCat("the plan file has version ", version,
                                                   ", this program reads ", kPlanVersion,
                                                   "; plan and build with the same release"));
  }
  return PlanReader(hashed.substr(kPlanHeaderBytes)).Read(find_format);
}

}  // namespace shardpack

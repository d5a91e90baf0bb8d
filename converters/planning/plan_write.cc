// Writes a plan as a file, for `.pack/plan` and for workers on other machines. All integers are
// little-endian:
//
//   "SPKPLAN1", u32 version, u32 0
//   columns of all rows in packing order, those of no shard last (plan_slices.h)
//   slices: XXH3-128 (low word, high word) for each shard, then for the rows of no shard
//   header: parts (plan_bytes.h)
//   u64 offset of the slices, u64 their number, XXH3-128 of the first 16 bytes, slices, header and
//   these two numbers
#include <tbb/parallel_for.h>

#include <algorithm>
#include <concepts>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "converters/planning/plan.h"
#include "converters/planning/plan_bytes.h"
#include "formats/io/enum_words.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

// Slices whose columns are gathered at a time.
constexpr size_t kSlicesAtOnce = 32;

void WriteSkips(const std::vector<Skip>& skips, PlanBytesWriter& out) {
  out.Number(skips.size());
  for (const Skip& skip : skips) {
    out.Number(skip.row);
    out.Number(static_cast<uint64_t>(skip.reason));
    out.Text(skip.detail);
  }
}

void WriteUnreadFolders(const std::vector<UnreadFolder>& folders, PlanBytesWriter& out) {
  out.Number(folders.size());
  for (const UnreadFolder& folder : folders) {
    out.Text(folder.path);
    out.Number(static_cast<uint64_t>(folder.reason));
  }
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

template <typename T>
void Put(T value, std::string& out) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

template <typename T>
void PutRow(const Column<T>& column, uint64_t row, uint64_t values, std::string& out) {
  out.append(reinterpret_cast<const char*>(column.data() + row * values), values * sizeof(T));
}

uint64_t Length(const Column<uint64_t>& ends, uint64_t row) {
  return ends.empty() ? 0 : ends[row] - (row == 0 ? 0 : ends[row - 1]);
}

}  // namespace

class PlanWriter {
 public:
  using Append = std::function<absl::Status(std::string_view)>;

  PlanWriter(const Plan& plan, const Append& append)
      : plan_(plan), listing_(plan.listing_), append_(append) {}

  absl::Status Write() {
    DivideRows();
    PlanBytesWriter head(kPlanFileVersion);
    const std::string begin = head.Take();
    RETURN_IF_ERROR(append_(begin));
    const PlanShape shape = Shape();
    std::vector<Digest> digests(slices_.size());
    uint64_t written = begin.size();
    const std::optional<PlanPlaces> places = PlacesOf(shape, ~uint64_t{0});
    for (size_t i = 0; i < kPlanColumns; ++i) {
      RETURN_IF_ERROR(
          WriteColumn(static_cast<PlanColumn>(i), places->row_bytes[i] > 0, digests, written));
      const uint64_t next = i + 1 < kPlanColumns ? places->offset[i + 1] : places->end;
      RETURN_IF_ERROR(append_(std::string(next - written, '\0')));
      written = next;
    }
    PlanBytesWriter parts;
    for (const Digest& digest : digests) {
      parts.Number(digest.low);
      parts.Number(digest.high);
    }
    WriteHeader(shape, parts);
    parts.Number(written);
    parts.Number(digests.size());
    const std::string header = parts.Take();
    RETURN_IF_ERROR(append_(header));
    DigestStream hash;
    hash.Update(AsBytes(begin));
    hash.Update(AsBytes(header));
    PlanBytesWriter footer;
    footer.Number(hash.Finish().low);
    footer.Number(hash.Finish().high);
    return append_(footer.Take());
  }

 private:
  // Rows in packing order: first those of the shards, then the others.
  void DivideRows() {
    std::vector<bool> packed(listing_.rows(), false);
    for (const uint32_t row : plan_.order_) packed[row] = true;
    for (uint32_t row = 0; row < listing_.rows(); ++row) {
      if (!packed[row]) rest_.push_back(row);
    }
    for (const PlannedShard& shard : plan_.shards_)
      slices_.push_back(std::span(plan_.order_).subspan(shard.first, shard.count));
    slices_.push_back(rest_);
    uint64_t name = 0, key = 0;
    for (const std::span<const uint32_t> rows : slices_) {
      name_begins_.push_back(name);
      key_begins_.push_back(key);
      for (const uint32_t row : rows) {
        name += Length(listing_.name_ends, row);
        key += Length(listing_.key_ends, row);
      }
    }
  }

  PlanShape Shape() const {
    return {.rows = listing_.rows(),
            .positions = plan_.order_.size(),
            .fields = listing_.fields.size(),
            .names_bytes = listing_.names.size(),
            .keys_bytes = listing_.keys.size(),
            .field_times = !listing_.field_mtime_ns.empty(),
            .places = !listing_.places.empty(),
            .keys = listing_.has_keys(),
            .split = !listing_.split.empty(),
            .images = !listing_.images.empty(),
            .hashes = !listing_.content_hash.empty(),
            .reordered = plan_.is_reordered()};
  }

  absl::Status WriteColumn(PlanColumn column, bool present, std::vector<Digest>& digests,
                           uint64_t& written) {
    std::vector<std::string> parts(kSlicesAtOnce);
    for (size_t first = 0; first < slices_.size(); first += kSlicesAtOnce) {
      const size_t count = std::min(kSlicesAtOnce, slices_.size() - first);
      tbb::parallel_for(size_t{0}, count, [&](size_t i) {
        parts[i].clear();
        if (present) Gather(column, first + i, parts[i]);
        digests[first + i] = AddToSlice(digests[first + i], parts[i]);
      });
      for (size_t i = 0; i < count; ++i) {
        RETURN_IF_ERROR(parts[i].empty() ? absl::OkStatus() : append_(parts[i]));
        written += parts[i].size();
      }
    }
    return absl::OkStatus();
  }

  void Gather(PlanColumn column, size_t slice, std::string& out) const {
    const uint64_t fields = listing_.fields.size();
    uint64_t end = column == PlanColumn::kNameEnd ? name_begins_[slice] : key_begins_[slice];
    uint64_t position = slice < plan_.shards_.size() ? plan_.shards_[slice].first : 0;
    for (const uint32_t row : slices_[slice]) {
      switch (column) {
        case PlanColumn::kSourceRow:
          Put(row, out);
          break;
        case PlanColumn::kFolder:
          Put(listing_.folder[row], out);
          break;
        case PlanColumn::kNameEnd:
          Put(end += Length(listing_.name_ends, row), out);
          break;
        case PlanColumn::kBytes:
          Put(listing_.bytes[row], out);
          break;
        case PlanColumn::kMtime:
          Put(listing_.mtime_ns.empty() ? int64_t{0} : listing_.mtime_ns[row], out);
          break;
        case PlanColumn::kLabel:
          Put(listing_.label[row], out);
          break;
        case PlanColumn::kFieldBytes:
          PutRow(listing_.field_bytes, row, fields, out);
          break;
        case PlanColumn::kFieldMtime:
          PutRow(listing_.field_mtime_ns, row, fields, out);
          break;
        case PlanColumn::kPlace:
          PutRow(listing_.places, row, 1 + fields, out);
          break;
        case PlanColumn::kKeyEnd:
          Put(end += Length(listing_.key_ends, row), out);
          break;
        case PlanColumn::kSplit:
          Put(listing_.split[row], out);
          break;
        case PlanColumn::kImage:
          PutRow(listing_.images, row, 1, out);
          break;
        case PlanColumn::kContentHash:
          Put(listing_.content_hash[row], out);
          break;
        case PlanColumn::kUnsorted:
          if (slice < plan_.shards_.size()) Put(plan_.unsorted_[position++], out);
          break;
        case PlanColumn::kNames:
          out.append(listing_.Name(row));
          break;
        case PlanColumn::kKeys:
          if (listing_.has_keys()) out.append(listing_.Key(row));
          break;
      }
    }
  }

  // Of a row of no shard.
  uint64_t RestRow(uint64_t row) const {
    return plan_.order_.size() +
           static_cast<uint64_t>(std::lower_bound(rest_.begin(), rest_.end(), row) - rest_.begin());
  }

  void WriteShape(const PlanShape& shape, PlanBytesWriter& out) const {
    for (const uint64_t number :
         {shape.rows, shape.positions, shape.fields, shape.names_bytes, shape.keys_bytes})
      out.Number(number);
    for (const bool flag : {shape.field_times, shape.places, shape.keys, shape.split, shape.images,
                            shape.hashes, shape.reordered})
      out.Number(flag);
  }

  // What is known of the listing without its rows.
  void WriteListing(PlanBytesWriter& out) const {
    out.Text(listing_.root);
    out.Texts(listing_.folders);
    out.Texts(listing_.classes);
    WriteSkips(RestSkips(listing_.skips), out);
    WriteUnreadFolders(listing_.unread_folders, out);
    out.Number(listing_.ignored.size());
    for (const auto& [extension, count] : listing_.ignored) {
      out.Text(extension);
      out.Number(count);
    }
    out.Number(listing_.left_out);
    for (const ListedField& field : listing_.fields) {
      out.Text(field.name);
      out.Text(field.suffix);
    }
    out.Number(listing_.content_digest.has_value());
    WriteDigest(listing_.content_digest.value_or(Digest{}), out);
    out.Texts(listing_.splits);
    WriteDigest(plan_.listing_digest(), out);
    WriteDigest(plan_.times_digest(), out);
    out.Number(plan_.source_bytes());
  }

  void WriteHeader(const PlanShape& shape, PlanBytesWriter& out) const {
    WriteShape(shape, out);
    out.Text(plan_.format_->name);
    OptionsWriter(out).Part(plan_.options_);
    WriteListing(out);
    out.Texts(plan_.splits_);
    out.Number(plan_.shards_.size());
    for (size_t n = 0; n < plan_.shards_.size(); ++n) {
      const PlannedShard& shard = plan_.shards_[n];
      out.Text(shard.name);
      out.Number(shard.split);
      out.Number(shard.count);
      out.Number(shard.bound_bytes);
      WriteDigest(plan_.ShardTimes(n), out);
    }
    out.Number(plan_.index_keys_);
    out.Number(plan_.portable_key_bytes_);
    out.Number(plan_.max_key_bytes_);
    WriteSuffixes(out);
    out.Number(plan_.filtered_);
    WriteSkips(RestSkips(plan_.skips_), out);
    out.Texts(plan_.notes_);
    const std::vector<Copy> copies = plan_.DroppedCopies();
    out.Number(copies.size());
    const std::vector<uint32_t> places = copies.empty() ? std::vector<uint32_t>() : Places();
    for (const Copy& copy : copies) {
      out.Number(places[copy.row]);
      out.Number(places[copy.original]);
    }
  }

  static void WriteDigest(const Digest& digest, PlanBytesWriter& out) {
    out.Number(digest.low);
    out.Number(digest.high);
  }

  void WriteSuffixes(PlanBytesWriter& out) const {
    std::vector<std::pair<uint32_t, uint32_t>> suffixes;
    const std::vector<uint32_t> places =
        plan_.key_suffixes_.empty() ? std::vector<uint32_t>() : Places();
    for (const auto& [row, n] : plan_.key_suffixes_) suffixes.emplace_back(places[row], n);
    std::sort(suffixes.begin(), suffixes.end());
    out.Number(suffixes.size());
    for (const auto& [row, n] : suffixes) {
      out.Number(row);
      out.Number(n);
    }
  }

  // Where each row of the listing is in the file.
  std::vector<uint32_t> Places() const {
    std::vector<uint32_t> places(listing_.rows());
    uint32_t next = 0;
    for (const std::span<const uint32_t> rows : slices_) {
      for (const uint32_t row : rows) places[row] = next++;
    }
    return places;
  }

  // Skipped rows are in no shard.
  std::vector<Skip> RestSkips(std::vector<Skip> skips) const {
    for (Skip& skip : skips) skip.row = RestRow(skip.row);
    return skips;
  }

  const Plan& plan_;
  const Listing& listing_;
  const Append& append_;
  std::vector<uint32_t> rest_;
  std::vector<std::span<const uint32_t>> slices_;
  std::vector<uint64_t> name_begins_, key_begins_;
};

absl::Status Plan::WriteTo(const std::function<absl::Status(std::string_view)>& append) const {
  if (slices_) {
    constexpr size_t kPiece = size_t{16} << 20;
    for (std::string_view left = slices_->file().bytes; !left.empty();) {
      const std::string_view piece = left.substr(0, kPiece);
      RETURN_IF_ERROR(append(piece));
      slices_->DropPages(piece);
      left.remove_prefix(piece.size());
    }
    return absl::OkStatus();
  }
  return PlanWriter(*this, append).Write();
}

absl::Status Plan::WriteWithoutRowsTo(StagedFile& file) const {
  const std::string_view bytes = slices_->file().bytes;
  const uint64_t rows_end = slices_->rows_end();
  RETURN_IF_ERROR(file.Append(AsBytes(bytes.substr(0, kPlanHeaderBytes))));
  RETURN_IF_ERROR(file.Skip(rows_end - kPlanHeaderBytes));
  return file.Append(AsBytes(bytes.substr(rows_end)));
}

std::string Plan::ToBytes() const {
  std::string bytes;
  (void)WriteTo([&](std::string_view part) {
    bytes.append(part);
    return absl::OkStatus();
  });
  return bytes;
}

}  // namespace shardpack

#include "formats/core/shard_index.h"

#include <errno.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "formats/core/index_layout.h"
#include "formats/io/error_facts.h"
#include "formats/io/file.h"
#include "formats/io/mapped_file.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr std::string_view kMagic = "SPKPIDX1";
constexpr uint32_t kVersion = 1;
constexpr uint64_t kAbsent = std::numeric_limits<uint64_t>::max();

using Header = IndexHeader;

struct Footer {
  uint64_t shard_bytes, records;
  uint64_t digest_high, digest_low;  // of everything before these two members
  char magic[8];
};
static_assert(sizeof(Footer) == 40);
constexpr size_t kNotHashed = sizeof(Footer) - offsetof(Footer, digest_high);

template <typename T>
void AppendColumn(std::string& out, const std::vector<T>& column) {
  out.append(reinterpret_cast<const char*>(column.data()), column.size() * sizeof(T));
  out.resize(PaddedInIndex(out.size()), '\0');
}

void AppendText(std::string& out, std::string_view text) {
  out.append(text);
  out.resize(PaddedInIndex(out.size()), '\0');
}

absl::Status Damaged(std::string_view path, const std::string& why) {
  return WithFacts(absl::DataLossError(absl::StrCat(EscapeForTerminal(path), ": ", why)),
                   {.path = std::string(path)});
}

// Makes the kernel read the pages: if the disk failed on a page accessed later, a signal would end
// the program. Kernels before 5.14 do not support this advice.
absl::Status ReadPages(const std::string& path, Bytes mapped) {
#ifdef MADV_POPULATE_READ
  if (!mapped.empty() &&
      ::madvise(const_cast<std::byte*>(mapped.data()), mapped.size(), MADV_POPULATE_READ) != 0) {
    if (errno == EFAULT || errno == EHWPOISON) return IoStatus("read", path, EIO);
  }
#endif
  return absl::OkStatus();
}

}  // namespace

struct ShardIndex::Storage {
  std::string path;
  std::variant<std::string, MappedFile> owner;
};

absl::StatusOr<ShardIndex> ShardIndex::Open(const std::string& path, uint64_t shard_bytes,
                                            std::optional<Digest> expect) {
  ASSIGN_OR_RETURN(MappedFile mapped, MappedFile::Open(path));
  ShardIndex index;
  index.bytes_ = mapped.bytes();
  RETURN_IF_ERROR(ReadPages(path, index.bytes_));
  index.storage_ = std::make_shared<const Storage>(Storage{path, std::move(mapped)});
  RETURN_IF_ERROR(index.Parse(shard_bytes, expect));
  return index;
}

absl::StatusOr<ShardIndex> ShardIndex::FromBytes(std::string bytes, uint64_t shard_bytes) {
  ShardIndex index;
  auto storage = std::make_shared<const Storage>(Storage{"index in memory", std::move(bytes)});
  index.bytes_ = AsBytes(std::get<std::string>(storage->owner));
  index.storage_ = std::move(storage);
  RETURN_IF_ERROR(index.Parse(shard_bytes, std::nullopt));
  return index;
}

absl::Status ShardIndex::Parse(uint64_t shard_bytes, const std::optional<Digest>& expect) {
  const std::string& path = storage_->path;
  // The file's own hash is of all but its end, so both come from one pass over the bytes.
  const size_t hashed = bytes_.size() - std::min(bytes_.size(), kNotHashed);
  DigestStream stream;
  stream.Update(bytes_.first(hashed));
  const Digest digest = stream.Finish();
  if (expect) {
    stream.Update(bytes_.subspan(hashed));
    if (stream.Finish() != *expect) return Damaged(path, "its hash differs from the manifest");
  }
  if (bytes_.size() < sizeof(Header) + sizeof(Footer) || bytes_.size() % 8 != 0) {
    return Damaged(path, absl::StrCat("too short for an index (", bytes_.size(), " bytes)"));
  }
  const auto header = LoadLittle<Header>(bytes_.data());
  const size_t footer_at = bytes_.size() - sizeof(Footer);
  const auto footer = LoadLittle<Footer>(bytes_.data() + footer_at);
  if (AsText(bytes_.first(8)) != kMagic || AsText(bytes_.last(8)) != kMagic) {
    return Damaged(path, "not a shard index (wrong magic)");
  }
  if (header.version != kVersion && digest == Digest{footer.digest_high, footer.digest_low}) {
    return WithFacts(
        absl::UnimplementedError(absl::StrCat(
            EscapeForTerminal(path), ": index version ", header.version, ", expected ", kVersion,
            "; another version of pack has written it: read it with that "
            "version")),
        {.path = path});
  }
  if (header.version != kVersion) {
    return Damaged(path, absl::StrCat("index version ", header.version, ", expected ", kVersion));
  }
  if (digest != Digest{footer.digest_high, footer.digest_low}) {
    return Damaged(path, "the index does not match its own hash");
  }
  if (footer.shard_bytes != shard_bytes) {
    return Damaged(path, absl::StrCat("made for a shard of ", footer.shard_bytes,
                                      " bytes, the shard has ", shard_bytes));
  }
  // Every count is checked against the file's size before it is multiplied.
  const uint64_t n = header.records, fields = header.fields;
  if (n != footer.records || n > bytes_.size() / 8 || fields > kMaxIndexFields ||
      header.field_names_bytes > bytes_.size() || header.keys_bytes > bytes_.size() ||
      header.paths_bytes > bytes_.size()) {
    return Damaged(path, "its counts do not fit its size");
  }
  records_ = n;
  shard_bytes_ = shard_bytes;
  const IndexLayout at = IndexLayoutOf(header);
  record_offsets_ = at.record_offsets;
  record_lengths_ = at.record_lengths;
  field_columns_ = at.field_columns;
  labels_ = at.labels;
  images_ = at.images;
  key_ends_ = at.key_ends;
  path_ends_ = at.path_ends;
  key_blob_ = at.key_blob;
  path_blob_ = at.path_blob;
  if (at.end != footer_at) return Damaged(path, "its columns do not fill the file");

  std::string_view names = AsText(bytes_.subspan(at.field_names, header.field_names_bytes));
  while (!names.empty()) {
    const size_t end = names.find('\0');
    if (end == std::string_view::npos) break;
    field_names_.push_back(names.substr(0, end));
    names.remove_prefix(end + 1);
  }
  if (!names.empty() || field_names_.size() != fields) {
    return Damaged(path, "its field names do not fit its field count");
  }
  if (RowsFit(header.keys_bytes, header.paths_bytes)) return absl::OkStatus();
  // Which does not?
  uint64_t key_end = 0, path_end = 0;
  const auto inside = [&](const Extent& extent, uint64_t limit) {
    return extent.offset <= limit && extent.length <= limit - extent.offset;
  };
  for (uint64_t r = 0; r < n; ++r) {
    const Extent whole = record(r);
    if (!inside(whole, shard_bytes)) {
      return Damaged(path, absl::StrCat("record ", r, " lies outside the shard"));
    }
    for (size_t f = 0; f < fields; ++f) {
      if (has_field(r, f) && !inside(field(r, f), shard_bytes)) {
        return Damaged(path,
                       absl::StrCat("field ", f, " of record ", r, " lies outside the shard"));
      }
    }
    const uint64_t next_key = At<uint64_t>(key_ends_, r), next_path = At<uint64_t>(path_ends_, r);
    if (next_key < key_end || next_key > header.keys_bytes || next_path < path_end ||
        next_path > header.paths_bytes) {
      return Damaged(path, absl::StrCat("the key or path of record ", r, " is out of bounds"));
    }
    key_end = next_key;
    path_end = next_path;
  }
  return absl::OkStatus();
}

// Column by column, without a branch: opening a dataset waits for it.
bool ShardIndex::RowsFit(uint64_t keys_bytes, uint64_t paths_bytes) const {
  const auto extents_fit = [this](uint64_t offsets, uint64_t lengths, bool may_be_absent) {
    bool misfit = false;
    for (uint64_t r = 0; r < records_; ++r) {
      const auto offset = At<uint64_t>(offsets, r), length = At<uint64_t>(lengths, r);
      const bool absent = may_be_absent & (offset == kAbsent);
      misfit |= (!absent) & ((offset > shard_bytes_) | (length > shard_bytes_ - offset));
    }
    return !misfit;
  };
  const auto ends_fit = [this](uint64_t ends, uint64_t limit) {
    bool misfit = false;
    uint64_t before = 0;
    for (uint64_t r = 0; r < records_; ++r) {
      const auto end = At<uint64_t>(ends, r);
      misfit |= end < before;
      before = end;
    }
    return !misfit && before <= limit;
  };
  bool fit = extents_fit(record_offsets_, record_lengths_, /*may_be_absent=*/false);
  for (size_t f = 0; f < fields(); ++f) {
    const uint64_t column = field_columns_ + f * 3 * records_ * 8;
    fit &= extents_fit(column, column + records_ * 8, /*may_be_absent=*/true);
  }
  return fit && ends_fit(key_ends_, keys_bytes) && ends_fit(path_ends_, paths_bytes);
}

template <typename T>
T ShardIndex::At(uint64_t column_offset, uint64_t row) const {
  return LoadLittle<T>(bytes_.data() + column_offset + row * sizeof(T));
}

std::string_view ShardIndex::Text(uint64_t ends_offset, uint64_t blob_offset, uint64_t row) const {
  const uint64_t begin = row == 0 ? 0 : At<uint64_t>(ends_offset, row - 1);
  return AsText(bytes_.subspan(blob_offset + begin, At<uint64_t>(ends_offset, row) - begin));
}

std::optional<size_t> ShardIndex::FindField(std::string_view name) const {
  const auto found = std::find(field_names_.begin(), field_names_.end(), name);
  if (found == field_names_.end()) return std::nullopt;
  return static_cast<size_t>(found - field_names_.begin());
}

Extent ShardIndex::record(uint64_t record) const {
  return {At<uint64_t>(record_offsets_, record), At<uint64_t>(record_lengths_, record)};
}

Extent ShardIndex::field(uint64_t record, size_t field) const {
  const uint64_t column = field_columns_ + field * 3 * records_ * 8;
  const uint64_t offset = At<uint64_t>(column, record);
  if (offset == kAbsent) return {};
  return {offset, At<uint64_t>(column + records_ * 8, record)};
}

bool ShardIndex::has_field(uint64_t record, size_t field) const {
  return At<uint64_t>(field_columns_ + field * 3 * records_ * 8, record) != kAbsent;
}

uint64_t ShardIndex::hash(uint64_t record, size_t field) const {
  return At<uint64_t>(field_columns_ + (field * 3 + 2) * records_ * 8, record);
}

void ShardIndex::Prefetch(uint64_t record, size_t field) const {
  const std::byte* const column = bytes_.data() + field_columns_ + field * 3 * records_ * 8;
  for (uint64_t part = 0; part < 3; ++part)
    __builtin_prefetch(column + (part * records_ + record) * 8);
  __builtin_prefetch(bytes_.data() + labels_ + record * 8);
}

int64_t ShardIndex::label(uint64_t record) const { return At<int64_t>(labels_, record); }
ImageInfo ShardIndex::image(uint64_t record) const { return At<ImageInfo>(images_, record); }
std::string_view ShardIndex::key(uint64_t record) const {
  return Text(key_ends_, key_blob_, record);
}
std::string_view ShardIndex::source_path(uint64_t record) const {
  return Text(path_ends_, path_blob_, record);
}

size_t MostFieldsOfForeign(uint64_t records, uint64_t shard_bytes) {
  constexpr uint64_t kFree = uint64_t{64} << 20, kTimesTheShard = 16, kExtentBytes = 24;
  const uint64_t bytes = std::max(kFree, std::min(shard_bytes, uint64_t{1} << 56) * kTimesTheShard);
  return std::clamp<uint64_t>(bytes / (kExtentBytes * std::max<uint64_t>(records, 1)), 1,
                              kMaxIndexFields);
}

void ShardIndexBuilder::Add(const ScannedRecord& record, std::string_view key,
                            std::string_view source_path, int64_t label, const ImageInfo& image) {
  const size_t row = record_offsets_.size();
  const size_t most =
      foreign_bytes_ ? MostFieldsOfForeign(row + 1, *foreign_bytes_) : kMaxIndexFields;
  if (columns_.size() > most) columns_.resize(most);
  record_offsets_.push_back(record.offset);
  record_lengths_.push_back(record.length);
  for (size_t i = 0; i < record.fields.size(); ++i) {
    const ScannedField& field = record.fields[i];
    auto column = i < columns_.size() && columns_[i].name == field.name
                      ? columns_.begin() + static_cast<ptrdiff_t>(i)
                      : std::find_if(columns_.begin(), columns_.end(),
                                     [&](const Column& c) { return c.name == field.name; });
    if (column == columns_.end()) {
      if (field.name.find('\0') != field.name.npos)
        continue;  // names end with a NUL, so only foreign names can contain one
      if (columns_.size() >= most) continue;  // further fields of a foreign shard are not indexed
      columns_.push_back({std::string(field.name), {}, {}, {}});
      column = columns_.end() - 1;
    }
    if (column->offsets.size() > row) continue;  // for a duplicate field, the first one counts
    column->offsets.resize(row, kAbsent);
    column->lengths.resize(row, 0);
    column->hashes.resize(row, 0);
    column->offsets.push_back(field.offset);
    column->lengths.push_back(field.length);
    column->hashes.push_back(field.hash);
  }
  labels_.push_back(label);
  images_.push_back(image);
  keys_.append(key);
  paths_.append(source_path);
  key_ends_.push_back(keys_.size());
  path_ends_.push_back(paths_.size());
}

std::string ShardIndexBuilder::Finish(uint64_t shard_bytes) {
  const uint64_t n = records();
  std::string names;
  for (Column& column : columns_) {
    absl::StrAppend(&names, column.name, std::string(1, '\0'));
    column.offsets.resize(n, kAbsent);
    column.lengths.resize(n, 0);
    column.hashes.resize(n, 0);
  }
  Header header{};
  std::memcpy(header.magic, kMagic.data(), 8);
  header.version = kVersion;
  header.fields = static_cast<uint32_t>(columns_.size());
  header.records = n;
  header.field_names_bytes = names.size();
  header.keys_bytes = keys_.size();
  header.paths_bytes = paths_.size();
  std::string out;
  out.reserve(sizeof(Header) + names.size() + n * (8 * (5 + 3 * columns_.size()) + 16) +
              keys_.size() + paths_.size() + sizeof(Footer) + 64);
  out.append(reinterpret_cast<const char*>(&header), sizeof(header));
  AppendText(out, names);
  AppendColumn(out, record_offsets_);
  AppendColumn(out, record_lengths_);
  for (const Column& column : columns_) {
    AppendColumn(out, column.offsets);
    AppendColumn(out, column.lengths);
    AppendColumn(out, column.hashes);
  }
  AppendColumn(out, labels_);
  AppendColumn(out, images_);
  AppendColumn(out, key_ends_);
  AppendColumn(out, path_ends_);
  AppendText(out, keys_);
  AppendText(out, paths_);
  Footer footer{};
  footer.shard_bytes = shard_bytes;
  footer.records = n;
  out.append(reinterpret_cast<const char*>(&footer), offsetof(Footer, digest_high));
  const Digest digest = Xxh3_128(AsBytes(out));
  footer.digest_high = digest.high;
  footer.digest_low = digest.low;
  std::memcpy(footer.magic, kMagic.data(), 8);
  out.append(reinterpret_cast<const char*>(&footer) + offsetof(Footer, digest_high),
             sizeof(Footer) - offsetof(Footer, digest_high));
  *this = ShardIndexBuilder();
  return out;
}

}  // namespace shardpack

// ShardIndex: the position of every record and field of a shard, with keys, labels, image facts and
// hashes (`.pidx`).
//
//   auto index = ShardIndex::Open("OUT/train-000000.tar.pidx", shard_bytes, expected_digest);
//   Extent image = index->field(7, 0);
//   uint64_t hash = index->hash(7, 0);   // XXH3-64 of those bytes
//
// File layout (all little-endian, every section 8-aligned, see docs/formats/pidx.md): header
// {magic, version, fields, records}, columns, key and path bytes, footer {shard length, records,
// XXH3-128 of everything before it, magic}.
//
// Lifetime: a copy shares the mapping; views are valid as long as one copy exists.
// Thread-safety: const, any thread.
// Errors: DataLoss if the file is damaged or does not match the shard.
// Units: bytes from the start of the shard.
#ifndef SHARDPACK_FORMATS_CORE_SHARD_INDEX_H_
#define SHARDPACK_FORMATS_CORE_SHARD_INDEX_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/core/image_info.h"
#include "formats/core/sample.h"
#include "formats/core/shard_scanner.h"
#include "formats/io/bytes.h"
#include "formats/io/hash.h"

namespace shardpack {

// An index has no more fields.
inline constexpr size_t kMaxIndexFields = 256;
// Of a foreign shard it may have fewer: as each of its samples takes 24 bytes in each field, even
// if it has none of them, a hostile shard could else fill the memory.
size_t MostFieldsOfForeign(uint64_t records, uint64_t shard_bytes);

struct Extent {
  uint64_t offset = 0, length = 0;
  friend bool operator==(const Extent&, const Extent&) = default;
};

class ShardIndex {
 public:
  // Maps and verifies the file: its hash, its footer, `expect` if given, and that every extent is
  // within `shard_bytes`.
  static absl::StatusOr<ShardIndex> Open(const std::string& path, uint64_t shard_bytes,
                                         std::optional<Digest> expect = std::nullopt);
  // The same for bytes in memory, which are copied.
  static absl::StatusOr<ShardIndex> FromBytes(std::string bytes, uint64_t shard_bytes);

  Bytes bytes() const { return bytes_; }  // of the file; valid as long as one copy exists
  uint64_t records() const { return records_; }
  size_t fields() const { return field_names_.size(); }
  std::string_view field_name(size_t field) const { return field_names_[field]; }
  std::optional<size_t> FindField(std::string_view name) const;
  uint64_t shard_bytes() const { return shard_bytes_; }

  Extent record(uint64_t record) const;  // the whole container record
  // {0, 0} if the record lacks the field; ask has_field.
  Extent field(uint64_t record, size_t field) const;
  bool has_field(uint64_t record, size_t field) const;
  uint64_t hash(uint64_t record, size_t field) const;
  // Hints that extent, hash and label of this record will be requested soon.
  void Prefetch(uint64_t record, size_t field) const;
  int64_t label(uint64_t record) const;
  ImageInfo image(uint64_t record) const;
  std::string_view key(uint64_t record) const;
  std::string_view source_path(uint64_t record) const;

 private:
  struct Storage;
  ShardIndex() = default;
  absl::Status Parse(uint64_t shard_bytes, const std::optional<Digest>& expect);
  bool RowsFit(uint64_t keys_bytes, uint64_t paths_bytes) const;
  template <typename T>
  T At(uint64_t column_offset, uint64_t row) const;
  std::string_view Text(uint64_t ends_offset, uint64_t blob_offset, uint64_t row) const;

  std::shared_ptr<const Storage> storage_;
  Bytes bytes_;
  uint64_t records_ = 0, shard_bytes_ = 0;
  std::vector<std::string_view> field_names_;
  // Offsets of the columns within bytes_.
  uint64_t record_offsets_ = 0, record_lengths_ = 0, field_columns_ = 0, labels_ = 0, images_ = 0;
  uint64_t key_ends_ = 0, path_ends_ = 0, key_blob_ = 0, path_blob_ = 0;
};

// Collects rows in shard order and writes the bytes of a `.pidx`.
//
// Thread-safety: one caller at a time.
class ShardIndexBuilder {
 public:
  ShardIndexBuilder() = default;
  // For a foreign shard of this size, whose fields after the first MostFieldsOfForeign are left
  // out.
  explicit ShardIndexBuilder(uint64_t foreign_bytes) : foreign_bytes_(foreign_bytes) {}

  // The other arguments give what the shard itself does not store. The first use of a field name
  // adds a column; rows without that field have no extent in it.
  void Add(const ScannedRecord& record, std::string_view key, std::string_view source_path,
           int64_t label, const ImageInfo& image);
  uint64_t records() const { return record_offsets_.size(); }
  // Returns the bytes of the file; the builder is empty afterwards.
  std::string Finish(uint64_t shard_bytes);

 private:
  struct Column {
    std::string name;
    std::vector<uint64_t> offsets, lengths, hashes;
  };
  std::optional<uint64_t> foreign_bytes_;
  std::vector<uint64_t> record_offsets_, record_lengths_;
  std::vector<Column> columns_;
  std::vector<int64_t> labels_;
  std::vector<ImageInfo> images_;
  std::vector<uint64_t> key_ends_, path_ends_;
  std::string keys_, paths_;
};

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_CORE_SHARD_INDEX_H_

// Listing: every input of a build as sorted columns: its path, size and class. Plans are made from
// it.
//
//   Listing listing = *source.List();
//   for (uint64_t row = 0; row < listing.rows(); ++row) Use(listing.Path(row), listing.bytes[row]);
//
// Order: by folder, then by name, both by bytes, so the same tree gives the same listing on every
// machine.
//
// Lifetime: a plain value; one that a mapped plan lends is valid as long as the plan.
// Thread-safety: const from any thread.
// Units: bytes; nanoseconds.
// Memory: 32 bytes per row plus the file name (56 once probed), and each folder's path once;
// columns that only some sources fill cost nothing when empty.
#ifndef SHARDPACK_CONVERTERS_LISTING_LISTING_H_
#define SHARDPACK_CONVERTERS_LISTING_LISTING_H_

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "converters/listing/column.h"
#include "converters/listing/skip.h"
#include "formats/core/image_info.h"
#include "formats/io/hash.h"

namespace shardpack {

// A field besides the image.
struct ListedField {
  std::string name;    // as in FieldView
  std::string suffix;  // its file is named like the image up to the last dot, then a dot and this;
                       // "" = not a file
  friend bool operator==(const ListedField&, const ListedField&) = default;
};

// A folder of the source that could not be listed, or a link in a folder's place that is not
// followed: its contents are unknown.
struct UnreadFolder {
  std::string path;  // relative to the root
  SkipReason reason = SkipReason::kPermission;
  bool is_link() const {
    return reason == SkipReason::kOutsideRoot || reason == SkipReason::kDangling;
  }
  friend bool operator==(const UnreadFolder&, const UnreadFolder&) = default;
};

// In Listing::field_bytes: the row lacks the field.
inline constexpr uint64_t kNoPart = std::numeric_limits<uint64_t>::max();

struct Listing {
  std::string root;                  // absolute path of the source; not part of the digest
  std::vector<std::string> folders;  // those with rows, relative to root, "" = root itself; sorted
  Column<uint32_t> folder;           // per row: index into `folders`
  Column<uint64_t> name_ends;        // per row: end of its file name in `names`
  TextColumn names;
  Column<uint64_t> bytes;
  Column<int64_t> mtime_ns;                  // freshness only; not part of the digest
  Column<int32_t> label;                     // per row: index into `classes`, or -1
  std::vector<std::string> classes;          // ordered
  std::vector<Skip> skips;                   // rows known to be unusable, sorted by row
  std::vector<UnreadFolder> unread_folders;  // each also has a skip; sorted by path
  std::map<std::string, uint64_t>
      ignored;  // files of other extensions, by lower-cased extension ("" = none)
  std::vector<std::string> warnings;  // for the user; each ends with the option that resolves it
  std::vector<std::string>
      notes;  // what the source assumed where nothing was specified, in the same form
  bool split_by_folder = false;  // the source found that the first folder of each path is its split
  uint64_t left_out = 0;         // inputs left out by options of the source; they have no row
  // Filled only by sources that have them (else empty).
  std::vector<ListedField> fields;
  Column<uint64_t> field_bytes;    // rows x fields, row-major; kNoPart if the row lacks the field
  Column<int64_t> field_mtime_ns;  // the same, for fields that are files; freshness only
  Column<uint64_t> places;         // rows x (1 + fields): position of image and fields, meaningful
                                   // only to the source
  std::optional<Digest>
      content_digest;         // of fields that are not files: the source made them while listing
  Column<uint64_t> key_ends;  // per row: end of its given key in `keys`
  TextColumn keys;
  std::vector<std::string> splits;  // given splits, with portable names
  Column<uint16_t> split;           // per row: index into `splits`
  // Filled by the probe pass only (else empty).
  Column<ImageInfo> images;
  Column<uint64_t> content_hash;  // XXH3-64 of the file
  // The same for the row's fields, if it has any; not part of the digest.
  Column<uint64_t> fields_hash;

  uint64_t rows() const { return bytes.size(); }
  std::string_view Name(uint64_t row) const {
    const uint64_t begin = row == 0 ? 0 : name_ends[row - 1];
    return std::string_view(names).substr(begin, name_ends[row] - begin);
  }
  bool has_keys() const { return !key_ends.empty(); }
  std::string_view Key(uint64_t row) const {
    const uint64_t begin = row == 0 ? 0 : key_ends[row - 1];
    return std::string_view(keys).substr(begin, key_ends[row] - begin);
  }
  // Image and all fields together.
  uint64_t SampleBytes(uint64_t row) const {
    uint64_t sum = bytes[row];
    for (size_t f = 0; f < fields.size(); ++f) sum += FieldBytes(row, f);
    return sum;
  }
  bool HasField(uint64_t row, size_t field) const {
    return field_bytes[row * fields.size() + field] != kNoPart;
  }
  uint64_t FieldBytes(uint64_t row, size_t field) const {
    return HasField(row, field) ? field_bytes[row * fields.size() + field] : 0;
  }
  // Relative to the root, '/' between components.
  std::string Path(uint64_t row) const {
    const std::string& parent = folders[folder[row]];
    return parent.empty() ? std::string(Name(row)) : parent + "/" + std::string(Name(row));
  }
  // Appends Path(row) to `out`; for hot paths that reuse a string.
  void AppendPath(uint64_t row, std::string& out) const {
    const std::string& parent = folders[folder[row]];
    if (!parent.empty()) out.append(parent).push_back('/');
    out.append(Name(row));
  }
  // Covers paths, sizes, labels, classes, skips, the source's further columns and, once probed, the
  // results of the probe pass; not root, mtimes and places.
  Digest ComputeDigest() const;
};

// Covers modification times of images and fields: Listing::mtime_ns and field_mtime_ns.
Digest TimesDigest(std::span<const int64_t> mtime_ns, std::span<const int64_t> field_mtime_ns);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_LISTING_LISTING_H_

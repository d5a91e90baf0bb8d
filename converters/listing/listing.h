// Listing: every input of a build as sorted columns: where it is, how large, and its class. The
// first input of a plan.
//
//   Listing listing = *source.List();
//   for (uint64_t row = 0; row < listing.rows(); ++row) Use(listing.Path(row), listing.bytes[row]);
//
// Order: by folder, then by name, both bytewise, so that the same tree gives the same listing on
// every machine.
//
// Thread-safety: const from any thread.
// Units: bytes; nanoseconds.
// Memory: 32 bytes a row beside the file name (56 once probed), and each folder's path once; the
// columns that only some sources fill cost nothing where they are empty.
#ifndef SHARDPACK_CONVERTERS_LISTING_LISTING_H_
#define SHARDPACK_CONVERTERS_LISTING_LISTING_H_

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "converters/listing/skip.h"
#include "formats/core/image_info.h"
#include "formats/io/hash.h"

namespace shardpack {

// A field beside the image.
struct ListedField {
  std::string name;    // as in FieldView
  std::string suffix;  // its file has the image's name up to the last dot, a dot and this; "" = it
                       // is no file
  friend bool operator==(const ListedField&, const ListedField&) = default;
};

// A folder of the source that could not be listed: what it holds is not known.
struct UnreadFolder {
  std::string path;  // relative to the root
  SkipReason reason = SkipReason::kPermission;
  friend bool operator==(const UnreadFolder&, const UnreadFolder&) = default;
};

// A size in Listing::field_bytes that stands for a field that the row lacks.
inline constexpr uint64_t kNoPart = std::numeric_limits<uint64_t>::max();

struct Listing {
  std::string root;                  // absolute path of the source; not part of the digest
  std::vector<std::string> folders;  // those with rows, relative to root, "" = root itself; sorted
  std::vector<uint32_t> folder;      // per row: position in `folders`
  std::vector<uint64_t> name_ends;   // per row: end of its file name in `names`
  std::string names;
  std::vector<uint64_t> bytes;
  std::vector<int64_t> mtime_ns;             // freshness only; not part of the digest
  std::vector<int32_t> label;                // per row: position in `classes`, or -1
  std::vector<std::string> classes;          // ordered
  std::vector<Skip> skips;                   // rows known to be unusable, ascending by row
  std::vector<UnreadFolder> unread_folders;  // each is also a skip; by path
  std::map<std::string, uint64_t>
      ignored;  // files of other extensions, by lower-cased extension ("" = none)
  std::vector<std::string> warnings;  // for the user, each ending with the option that answers it
  std::vector<std::string>
      notes;  // what the source has made of it where nothing was said, the same way
  bool split_by_folder = false;  // so found: the first folder of each path is its split
  uint64_t left_out = 0;         // inputs that options of the source leave out; they are no rows
  // Filled only by sources that know them (else empty).
  std::vector<ListedField> fields;
  std::vector<uint64_t>
      field_bytes;  // rows x fields, row by row; kNoPart where a row lacks the field
  std::vector<int64_t> field_mtime_ns;  // the same, of those that are files; freshness only
  std::vector<uint64_t> places;  // rows x (1 + fields): where the source finds image and fields, in
                                 // its own way of counting
  std::optional<Digest>
      content_digest;  // of fields that are no files: the source made them while it listed
  std::vector<uint64_t> key_ends;  // per row: end of its given key in `keys`
  std::string keys;
  std::vector<std::string> splits;  // given splits, portable names
  std::vector<uint16_t> split;      // per row: position in `splits`
  // Filled by the probe pass only (else empty).
  std::vector<ImageInfo> images;
  std::vector<uint64_t> content_hash;  // XXH3-64 of the file
  // The same of the row's fields, where there are some; not part of the digest.
  std::vector<uint64_t> fields_hash;

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
  // Of the image and all fields.
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
  // Appends Path(row) to `out`; for hot paths that reuse their string.
  void AppendPath(uint64_t row, std::string& out) const {
    const std::string& parent = folders[folder[row]];
    if (!parent.empty()) out.append(parent).push_back('/');
    out.append(Name(row));
  }
  // Over paths, sizes, labels, classes, skips, what else the source gives and, once probed, what
  // the probe pass found; not over root, mtimes and places.
  Digest ComputeDigest() const;
};

// Over when the rows' images and fields were last modified: Listing::mtime_ns and field_mtime_ns.
Digest TimesDigest(const std::vector<int64_t>& mtime_ns,
                   const std::vector<int64_t>& field_mtime_ns);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_LISTING_LISTING_H_

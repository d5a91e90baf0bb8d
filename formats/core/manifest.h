// Manifest: manifest.json, the single commit point of a dataset. A dataset exists once this file
// has been renamed into place.
//
//   absl::StatusOr<Manifest> manifest = Manifest::Read("OUT");
//   for (const ManifestShard& shard : manifest->shards) ...
//   std::string json = manifest->ToJson();  // canonical: sorted keys, its own hash as "self"
//
// Canonical form: UTF-8, sorted keys, indented by one space per level, one newline at the end;
// strings through PercentEscape (formats/io/escape.h); digests as 32 hex digits. `self` is the
// XXH3-128 of that text without the `self` line.
//
// Errors: Parse returns DataLoss with the position for any text that ToJson would not write (hash,
// spelling, limits, names, sums); DefectOf gives the kind. Read also returns NotFound and I/O
// errors.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_CORE_MANIFEST_H_
#define SHARDPACK_FORMATS_CORE_MANIFEST_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/io/hash.h"

namespace shardpack {

inline constexpr std::string_view kManifestName = "manifest.json";
inline constexpr std::string_view kIndexSuffix = ".pidx";
inline constexpr uint64_t kMaxManifestBytes = uint64_t{256} << 20;

struct FileEntry {
  std::string name;  // relative to the dataset folder
  uint64_t bytes = 0;
  Digest xxh3_128;
  friend bool operator==(const FileEntry&, const FileEntry&) = default;
};

struct ManifestShard {
  std::string name, split;
  uint64_t bytes = 0, records = 0;
  Digest xxh3_128;
  FileEntry index;
  std::string sha256;  // empty unless requested
  // The data file of a shard that was indexed in place and is not in the dataset's folder under its
  // name: an absolute path or one relative to that folder, possibly with `..`. It is not in
  // `files`.
  std::string location = {};
  // The planned totals, if samples turned out to be bad: "records", and the total "bytes of FIELD".
  // Some containers depend on them, so the shard could not be rebuilt from its content alone. Empty
  // if they follow from the records.
  std::map<std::string, uint64_t> planned = {};
};

// Keys of ManifestShard::planned.
inline constexpr std::string_view kPlannedRecords = "records";
inline constexpr std::string_view kPlannedBytesOf = "bytes of ";

struct ManifestCounts {
  uint64_t seen = 0, packed = 0, filtered = 0, skipped = 0, failed = 0;
  std::map<std::string, uint64_t> ignored = {};  // other files by extension; not counted in `seen`
};

// What a loader wants to know before it reads any data.
struct DatasetFacts {
  uint64_t largest_record_bytes = 0, max_image_bytes = 0, image_bytes = 0;
  uint32_t min_width = 0, max_width = 0, min_height = 0, max_height = 0;
  std::map<std::string, uint64_t> image_formats;  // keyed by ImageExtension
  // If a transform was requested: the number of images "kept" byte for byte, the number
  // "re-encoded", and for each kind of change, the number of images it affected.
  std::map<std::string, uint64_t> pixels = {};
  // On request, exact sums over all 8-bit pixels, gray counted as red, green and blue: "images",
  // "pixels", "sum_0" to "sum_2", "squares_0" to "squares_2". "undecodable" images are not
  // included.
  std::map<std::string, uint64_t> pixel_sums = {};
  // Derived from pixel_sums: "mean" and "std" of values 0 to 1, one number per channel, as decimal
  // text separated by commas.
  std::map<std::string, std::string> pixel_stats = {};
};

// The value of `origin` for third-party shards. The word is part of the file format, and so it
// stays.
inline constexpr std::string_view kIndexedInPlaceOrigin = "adopted";

struct Manifest {
  static constexpr int kSchema = 1;

  std::string format, layout;
  // Empty: packed from a source. kIndexedInPlaceOrigin: existing shards were indexed in place, so
  // there is no plan, option or source, and the folder may contain other files.
  std::string origin;
  std::map<std::string, std::string> tool;  // version, commit, linked libraries
  // Options that change bytes, as the user would write them.
  std::map<std::string, std::string> options;
  Digest options_digest, plan_digest;
  std::string source_root;
  uint64_t source_files = 0, source_bytes = 0;
  // A hash of the source files' modification times, 32 hex digits, by which a rerun sees that the
  // files are still those that were packed. Not part of what was packed, so not part of the
  // identity. Empty in manifests of older versions.
  std::string source_times;
  Digest listing_digest;
  ManifestCounts counts;
  std::vector<std::string> classes;  // indexed by label
  int64_t label_base = 0;
  std::map<std::string, uint64_t> splits;  // records per split
  std::vector<ManifestShard> shards;
  // Every file of the dataset except the manifest itself, sorted by name.
  std::vector<FileEntry> files;
  DatasetFacts facts;

  std::string ToJson() const;
  static absl::StatusOr<Manifest> Parse(std::string_view json);
  static absl::StatusOr<Manifest> Read(const std::string& dataset);  // the folder
  // The checks that Parse makes on the values: names, uniqueness, sums, and whether `files` covers
  // the shards and indexes. DataLoss.
  absl::Status Check() const;

  bool indexed_in_place() const { return origin == kIndexedInPlaceOrigin; }
  // The file that a shard's extents refer to, absolute or relative to the dataset's folder: the
  // shard itself, the data file if the shard is a folder, or the shard's location.
  std::string DataFileOf(const ManifestShard& shard) const;

  // Hash over format, layout, classes and the shards' names, sizes and hashes: what was packed, not
  // how or from where.
  Digest Identity() const;
};

// What is wrong with a manifest that Parse or Check rejected.
enum class ManifestDefect : uint8_t {
  kOther,       // not a manifest: spelling, members, limits, names
  kSelfHash,    // a manifest whose bytes were changed
  kAccounting,  // the hash of the text is right, but the counts do not add up
};
ManifestDefect DefectOf(const absl::Status& status);

// True for one or two components of [A-Za-z0-9._-]{1,128} that do not begin with a dot. Also true
// for the folder .nv-meta and the file .nv-meta/.info.json.
bool IsDatasetFileName(std::string_view name);
// True for a valid shard location: a path without empty and `.` components, with `..` only at the
// beginning.
bool IsShardLocation(std::string_view path);
// Resolves `name` relative to `folder`, the dataset's; an absolute path is unchanged.
std::string PathInDataset(const std::string& folder, const std::string& name);
// "xxh3:<32 hex>", as --expect accepts it.
std::string IdentityText(const Digest& identity);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_CORE_MANIFEST_H_

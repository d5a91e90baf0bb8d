// Manifest: manifest.json, the one commit point of a dataset. A dataset exists when this file has
// been renamed into place.
//
//   absl::StatusOr<Manifest> manifest = Manifest::Read("OUT");
//   for (const ManifestShard& shard : manifest->shards) ...
//   std::string json = manifest->ToJson();  // canonical: sorted keys, its own hash as "self"
//
// Canonical form: UTF-8, sorted keys, one blank of indent a level, one newline at the end; strings
// through PercentEscape (formats/io/escape.h); digests as 32 hex digits. `self` is the XXH3-128 of
// that text without the line of `self`.
//
// Errors: Parse answers DataLoss with the place for anything that is not exactly a manifest written
// by ToJson (hash, spelling, limits, names, sums); DefectOf says which kind. Read also answers
// NotFound and the errors of reading.
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
  std::string sha256;  // empty unless asked for
  // Of an adopted shard that does not lie in the dataset's folder under its name: its data file,
  // absolute or relative to that folder, `..` included. It is then not in `files`.
  std::string location = {};
  // What the shard was planned for, where samples turned out bad: "records", and "bytes of FIELD"
  // in all. Some containers depend on it, so that without it a shard could not be made again from
  // what is in it. Empty where it follows from the records.
  std::map<std::string, uint64_t> planned = {};
};

// Names in ManifestShard::planned.
inline constexpr std::string_view kPlannedRecords = "records";
inline constexpr std::string_view kPlannedBytesOf = "bytes of ";

struct ManifestCounts {
  uint64_t seen = 0, packed = 0, filtered = 0, skipped = 0, failed = 0;
  std::map<std::string, uint64_t> ignored = {};  // other files by extension; not in `seen`
};

// What a loader wants to know before it reads anything.
struct DatasetFacts {
  uint64_t largest_record_bytes = 0, max_image_bytes = 0, image_bytes = 0;
  uint32_t min_width = 0, max_width = 0, min_height = 0, max_height = 0;
  std::map<std::string, uint64_t> image_formats;  // by ImageExtension
  // Where the pixels were to be changed: how many images were "kept" byte for byte, how many
  // "re-encoded", and of these, for each kind of change, how many it befell.
  std::map<std::string, uint64_t> pixels = {};
  // On request, exact sums over all pixels of 8 bits, gray as red, green and blue: "images",
  // "pixels", "sum_0" to "sum_2", "squares_0" to "squares_2"; "undecodable" images are not in them.
  std::map<std::string, uint64_t> pixel_sums = {};
  // What follows from these: "mean" and "std" of values 0 to 1, one number a channel, as decimal
  // text with commas between.
  std::map<std::string, std::string> pixel_stats = {};
};

// What `origin` says of shards that another tool has made.
inline constexpr std::string_view kAdoptedOrigin = "adopted";

struct Manifest {
  static constexpr int kSchema = 1;

  std::string format, layout;
  // Empty: packed from a source. kAdoptedOrigin: the shards were found and indexed as they are, so
  // that there is no plan, no option and no source; other files may lie beside them.
  std::string origin;
  std::map<std::string, std::string> tool;  // version, commit, linked libraries
  // Those that change bytes, as the user would spell them.
  std::map<std::string, std::string> options;
  Digest options_digest, plan_digest;
  std::string source_root;
  uint64_t source_files = 0, source_bytes = 0;
  // Of when the source's files were last modified, 32 hex digits: tells a rerun that they still are
  // what was packed. Not part of what was packed, and so not of the identity. Empty in manifests of
  // older versions.
  std::string source_times;
  Digest listing_digest;
  ManifestCounts counts;
  std::vector<std::string> classes;  // ordered; a label is a position here
  int64_t label_base = 0;
  std::map<std::string, uint64_t> splits;  // records of each
  std::vector<ManifestShard> shards;
  // Every file of the dataset but the manifest itself, sorted by name.
  std::vector<FileEntry> files;
  DatasetFacts facts;

  std::string ToJson() const;
  static absl::StatusOr<Manifest> Parse(std::string_view json);
  static absl::StatusOr<Manifest> Read(const std::string& dataset);  // the folder
  // What Parse checks of the values: names, uniqueness, `files` covering the shards and indexes,
  // sums. DataLoss.
  absl::Status Check() const;

  bool adopted() const { return origin == kAdoptedOrigin; }
  // The file that a shard's extents count in, relative to the dataset's folder or absolute: the
  // shard, the one file of the folder that it is, or where the shard says it lies.
  std::string DataFileOf(const ManifestShard& shard) const;

  // Hash over format, layout, classes and the shards' names, sizes and hashes: what was packed, not
  // how or where from.
  Digest Identity() const;
};

// What is wrong with a manifest that Parse or Check refused.
enum class ManifestDefect : uint8_t {
  kOther,       // not a manifest: spelling, members, limits, names
  kSelfHash,    // a manifest whose bytes were changed
  kAccounting,  // its own hash fits, but its counts do not add up
};
ManifestDefect DefectOf(const absl::Status& status);

// True for one or two components of [A-Za-z0-9._-]{1,128}, none beginning with a dot; excepted are
// the folder .nv-meta and the file .nv-meta/.info.json.
bool IsDatasetFileName(std::string_view name);
// True for what a shard's location may be: a path without empty and `.` components, with `..` at
// the beginning alone.
bool IsShardLocation(std::string_view path);
// `name` as a dataset in `folder` means it: an absolute path stays.
std::string PathInDataset(const std::string& folder, const std::string& name);
// "dataset xxh3:<32 hex>" without the first word; accepted by --expect.
std::string IdentityText(const Digest& identity);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_CORE_MANIFEST_H_

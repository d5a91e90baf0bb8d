// DatasetStats: what a dataset holds, and what about it is suspicious.
//
//   absl::StatusOr<DatasetStats> stats = GatherStats(dataset, {.folder = "OUT"});
//   std::cout << ToJson(*stats);   // schema "shardpack.stats/1"
//   bool suspicious = !stats->notes.empty();
//
// Comes from manifest and indexes alone; of third-party shards, whose indexes hold no facts about
// images, all images are read, though not decoded.
//
// Lifetime: owns everything.
// Thread-safety: any thread; works on all cores.
// Errors: DataLoss for a damaged index, naming it; FailedPrecondition if the dataset was replaced
// meanwhile; I/O errors.
// Memory: 48 bytes a sample.
// Units: bytes; pixels as stored, before the EXIF orientation is applied.
#ifndef SHARDPACK_VALIDATORS_LOOKING_DATASET_STATS_H_
#define SHARDPACK_VALIDATORS_LOOKING_DATASET_STATS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "readers/dataset/dataset.h"
#include "validators/looking/distribution.h"
#include "validators/looking/near_copies.h"
#include "validators/looking/sample_rows.h"
#include "validators/looking/skipped_list.h"
#include "validators/looking/stats_notes.h"

namespace shardpack {

struct ClassStats {
  int64_t label = -1;  // -1: the samples without a label
  std::string name;
  uint64_t samples = 0, image_bytes = 0;
  std::vector<uint64_t> by_split;  // as DatasetStats::splits
};

struct SplitStats {
  std::string name;
  uint64_t samples = 0, shards = 0, shard_bytes = 0;
  uint64_t min_shard_samples = 0, max_shard_samples = 0;
  uint64_t min_shard_bytes = 0, max_shard_bytes = 0;
};

struct FieldStats {
  std::string name;
  uint64_t samples = 0, bytes = 0;  // those that have it
};

struct CopyCounts {
  uint64_t groups = 0;
  uint64_t extra = 0;                       // copies beside the first one of each group
  uint64_t leaks = 0, label_conflicts = 0;  // groups
};

struct DatasetStats {
  std::string format, layout, identity;
  bool has_manifest = false;
  uint64_t samples = 0, shards = 0;
  uint64_t shard_bytes = 0, image_bytes = 0;
  std::vector<SplitStats> splits;   // in the order of the shards
  std::vector<ClassStats> classes;  // by label; also those without samples
  ClassStats unlabelled;
  Distribution width, height, aspect, bytes;  // aspect: width / height
  uint64_t without_facts = 0;  // images of unknown size, and samples without an image
  std::map<std::string, uint64_t> formats, pixels;  // "jpg"; "RGB, 8 bits"
  uint64_t progressive = 0, animated = 0, alpha = 0, turned = 0, truncated = 0;
  std::vector<FieldStats> fields;
  CopyCounts copies;
  uint64_t filtered = 0;
  SkippedList skipped;
  std::map<std::string, std::string> pixel_stats;  // "mean", "std", if they were computed
  std::vector<StatsNote> notes;
  // Files that are missing or have another size. What the indexes say of them is in the numbers, as
  // far as these can be read.
  std::vector<std::string> damaged_files;
  // What is not in these numbers: parts that could not be read.
  std::vector<std::string> not_looked_at;
  // Of them, shards, which are in no other number here. Unless 0 there are no notes, and copies are
  // not counted: both are about all samples.
  uint64_t unread_shards = 0;

  bool classes_have_names = false;

  // Whether any shard could be looked at.
  bool any_looked_at() const { return shards > 0 || unread_shards == 0; }
  bool damaged() const { return !damaged_files.empty() || !not_looked_at.empty(); }
};

struct StatsOptions {
  // Of a dataset with a manifest: where skipped.jsonl is; empty: not read.
  std::string folder = {};
  // Damaged indexes and lists are named in not_looked_at, instead of being an error.
  bool in_spite_of_damage = false;
  std::vector<DamagedFile> damaged_files = {};  // as Dataset::OpenDamaged found them
};

absl::StatusOr<DatasetStats> GatherStats(const Dataset& dataset, const StatsOptions& options);

// Notes of what was found when all images were decoded.
void AddDecodedNotes(const SampleRows& rows, const NearCopies& decoded, DatasetStats& stats);

std::string ToJson(const DatasetStats& stats);  // one object, one newline

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_LOOKING_DATASET_STATS_H_

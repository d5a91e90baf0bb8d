// DiffDatasets: what differs between two datasets of any formats, by their indexes alone.
//
//   absl::StatusOr<DatasetDiff> diff = DiffDatasets(was, now, {.by = DiffBy::kKey});
//   if (diff->differs()) for (const SampleChange& change : diff->changes) ...
//
// Samples of equal identity - key, source path or image bytes - are compared: the image and the
// fields by length and hash, the class by name, the split by name. Of those without a partner, the
// ones with equal images count as renamed (with kHash: those with equal keys as of another
// content); the rest is removed or added. If an identity is there more than once, samples with
// equal keys are partners first; among them those of one split, then those with one image; then the
// others, likewise. A sample that has no name on one side is not renamed.
//
// Lifetime: owns everything.
// Thread-safety: any thread; works on all cores.
// Errors: those of opening indexes; InvalidArgument for kPath if a dataset has no source paths.
// Memory: 48 bytes a sample, and 24 a change.
#ifndef SHARDPACK_VALIDATORS_LOOKING_DATASET_DIFF_H_
#define SHARDPACK_VALIDATORS_LOOKING_DATASET_DIFF_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "readers/dataset/dataset.h"
#include "validators/looking/looking_options.h"
#include "validators/looking/sample_rows.h"
#include "validators/looking/shards_with_index.h"

namespace shardpack {

// What may have happened to a sample, from the gravest; several at once.
enum class ChangeKind : uint8_t {
  kAdded,
  kRemoved,
  kContent,
  kRelabelled,
  kMoved,  // to another split
  kRenamed,
  kFields,  // other than the image
  kCount,   // not a kind
};
std::string_view ChangeWord(ChangeKind kind);  // "added", "content", "fields"

struct SampleChange {
  static constexpr uint64_t kNoRow = ~uint64_t{0};
  uint64_t was = kNoRow, now = kNoRow;  // rows of DatasetDiff::rows; kNoRow: added, or removed
  uint8_t kinds = 0;                    // a bit for each kind

  bool Has(ChangeKind kind) const { return (kinds >> static_cast<int>(kind) & 1) != 0; }
  void Set(ChangeKind kind) { kinds |= static_cast<uint8_t>(1 << static_cast<int>(kind)); }
};

struct FieldDifference {
  std::string name;
  uint64_t lost = 0, gained = 0, changed = 0;  // samples
};

// A class that only one side has, or that has another number.
struct ClassDifference {
  std::string name;
  int64_t was = -1, now = -1;  // its numbers; -1: not there
};

struct OptionDifference {
  std::string name, was, now;
};

struct DatasetDiff {
  SampleRows rows;  // of both datasets, the first being what was
  uint64_t same = 0;
  std::vector<uint64_t> counts;       // by ChangeKind
  std::vector<SampleChange> changes;  // by `was`, then those that were added
  std::vector<FieldDifference> fields;
  std::vector<ClassDifference> classes;
  std::vector<OptionDifference> options;  // also "format" and "layout"
  std::vector<std::string> not_compared;  // a sentence each
  DatasetDamage damage;                   // for the JSON; set by the caller
  // Only one side has names of classes, and labels were compared as numbers.
  bool labels_by_number = false;

  uint64_t count(ChangeKind kind) const { return counts[static_cast<size_t>(kind)]; }
  // Whether samples or classes differ; options are how it was made, not what it holds.
  bool differs() const { return !changes.empty() || !classes.empty(); }
};

struct DiffOptions {
  DiffBy by = DiffBy::kKey;
  // A side of which not all shards could be looked at: nobody knows what is missing there, so that
  // what only the other side has is counted in `not_compared`.
  bool was_is_partial = false, now_is_partial = false;
};

absl::StatusOr<DatasetDiff> DiffDatasets(const Dataset& was, const Dataset& now,
                                         const DiffOptions& options);

// The names of the fields in which the sample differs.
absl::StatusOr<std::vector<std::string>> ChangedFields(const DatasetDiff& diff,
                                                       const SampleChange& change);

// Writes the diff as one JSON object and a newline, schema "shardpack.diff/1", in pieces.
absl::Status WriteJson(const DatasetDiff& diff, const std::function<void(std::string_view)>& write);

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_LOOKING_DATASET_DIFF_H_

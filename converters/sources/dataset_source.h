// DatasetSource: a packed dataset, or shards of other tools, as a SampleSource: what `pack convert`
// reads.
//
//   DatasetSource source(*Dataset::Open("IN", formats), {});
//   absl::StatusOr<Listing> listing = source.List();   // keys, labels, splits, fields as they are
//   LoadResult loaded = source.Load(*listing, row, arena);
//
// Rows are in the order in which the dataset was planned, also where its format sorted them by key.
// Bytes are checked against the hashes of the dataset; a sample that does not match is a skip
// (bad-crc). A path that would lead out of a folder, and one that is missing, is replaced by the
// sample's place.
//
// Lifetime: shares the dataset.
// Thread-safety: as SampleSource.
// Errors: InvalidArgument for a dataset that cannot be a source; DataLoss for damage of its
// indexes.
#ifndef SHARDPACK_CONVERTERS_SOURCES_DATASET_SOURCE_H_
#define SHARDPACK_CONVERTERS_SOURCES_DATASET_SOURCE_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "converters/listing/sample_source.h"
#include "converters/listing/sidecars.h"
#include "converters/planning/plan.h"
#include "readers/dataset/dataset.h"

namespace shardpack {

struct DatasetSourceOptions {
  std::string root = {};  // where the dataset is, for the manifest of what is made of it
  MissingPart missing = MissingPart::kSkip;  // a field that only some samples have
  bool texts_as_classes = false;             // of .cls, where it is not a number
  std::vector<std::string> classes = {};     // then these, in this order; empty = all texts, sorted
  std::vector<std::string> warnings = {};    // for the listing, of whoever opened the dataset

  // For the plan's digest; `dataset` counts with its identity.
  std::map<std::string, std::string> ToMap(const Dataset& dataset) const;
};

class DatasetSource : public SampleSource {
 public:
  DatasetSource(Dataset dataset, DatasetSourceOptions options);

  absl::StatusOr<Listing> List() override;
  LoadResult Load(const Listing& listing, uint64_t row, Arena& arena) const override;
  uint64_t listed() const override { return listed_.load(std::memory_order_relaxed); }

 private:
  Dataset dataset_;
  DatasetSourceOptions options_;
  std::atomic<uint64_t> listed_{0};
};

// Whether the dataset's json field is what its own writer makes on request (--with-json), so that
// another writer will make it anew.
bool HasMadeJson(const Dataset& dataset);

// The fields whose files have another ending than the field's name (--sidecars png:mask), with that
// ending.
std::map<std::string, std::string> SidecarSuffixes(const Dataset& dataset);

// kKeep for a dataset that was packed so: it has samples that lack a field. Else kSkip.
MissingPart InheritedMissingPart(const Dataset& dataset);

// Sets what the dataset was packed with where it decides about bytes and the target knows it: how
// far images are looked into, whether truncated ones count, json fields and the name of the image.
// `given` are flags that the user typed; those stay.
void InheritOptions(const Dataset& dataset, const Format& target,
                    const std::set<std::string>& given, PlanOptions* options);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_DATASET_SOURCE_H_

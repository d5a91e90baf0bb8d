// DatasetSource: a packed dataset or third-party shards as a SampleSource; `pack convert` reads
// from it.
//
//   DatasetSource source(*Dataset::Open("IN", formats), {});
//   absl::StatusOr<Listing> listing = source.List();   // keys, labels, splits, fields as they are
//   LoadResult loaded = source.Load(*listing, row, arena);
//
// Rows are in the order in which the dataset was planned, even if its format sorted them by key.
// Bytes are checked against the hashes of the dataset; a sample that does not match is a skip
// (bad-crc). A path that is missing, or would lead out of a folder, is replaced by the sample's
// position.
//
// Lifetime: shares the dataset.
// Thread-safety: as SampleSource.
// Errors: InvalidArgument for a dataset that cannot be a source, and for keys to leave out that are
// those of another one or name none of its samples; DataLoss for damaged indexes.
#ifndef SHARDPACK_CONVERTERS_SOURCES_DATASET_SOURCE_H_
#define SHARDPACK_CONVERTERS_SOURCES_DATASET_SOURCE_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "converters/listing/key_list.h"
#include "converters/listing/sample_source.h"
#include "converters/listing/sidecars.h"
#include "converters/planning/plan.h"
#include "images/probe/probe.h"
#include "readers/dataset/dataset.h"

namespace shardpack {

struct DatasetSourceOptions {
  std::string root = {};  // path of the dataset, recorded in the manifest of what is made from it
  MissingPart missing = MissingPart::kSkip;  // for a field that only some samples have
  bool texts_as_classes = false;             // texts from .cls that are not numbers
  std::vector<std::string> classes =
      {};  // for texts_as_classes: these, in this order; empty = all texts, sorted
  std::optional<KeyList> exclude = {};     // samples with these keys are left out
  std::vector<std::string> warnings = {};  // for the listing, from opening the dataset

  // For the plan's digest; includes the identity of `dataset`.
  std::map<std::string, std::string> ToMap(const Dataset& dataset) const;
};

class DatasetSource : public SampleSource {
 public:
  DatasetSource(Dataset dataset, DatasetSourceOptions options);

  absl::StatusOr<Listing> List() override;
  LoadResult Load(const Listing& listing, uint64_t row, Arena& arena) const override;
  void LoadRows(const Listing& listing, std::span<const uint32_t> rows, Arena& arena,
                std::vector<LoadResult>& results) const override;
  uint64_t listed() const override { return listed_.load(std::memory_order_relaxed); }

 private:
  // The sample with memory for its fields, which `reads` fills, or why it cannot be loaded.
  LoadResult Prepare(const Listing& listing, uint32_t row, Arena& arena,
                     std::vector<FieldRead>& reads) const;

  Dataset dataset_;
  DatasetSourceOptions options_;
  const std::optional<ProbeOptions> probed_;  // how each image was checked when it was packed
  std::atomic<uint64_t> listed_{0};
};

// Whether the dataset's json field is the one its own writer makes on request (--with-json), so
// that another writer will make it again.
bool HasMadeJson(const Dataset& dataset);

// The fields whose file extension differs from the field's name (--fields png:mask), with that
// extension.
std::map<std::string, std::string> SidecarSuffixes(const Dataset& dataset);

// kKeep for a dataset packed with it, which has samples that lack a field; else kSkip.
MissingPart InheritedMissingPart(const Dataset& dataset);

// Sets the options that the dataset was packed with, as far as they affect bytes and the target
// knows them: how thoroughly images are checked, whether truncated ones are accepted, json fields
// and the name of the image. Flags that the user typed (`given`) keep their values.
void InheritOptions(const Dataset& dataset, const Format& target,
                    const std::set<std::string>& given, PlanOptions* options);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_DATASET_SOURCE_H_

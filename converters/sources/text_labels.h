// TextLabels: the samples of shards whose .cls is not a number. A number is a label, and says
// nothing of names; a text is a field like others, unless it is asked for as the class.
//
//   TextLabels texts(dataset);
//   for (...) texts.Count(index, {shard, record}, row);
//   RETURN_IF_ERROR(texts.Settle(missing, listing));   // or MakeClasses
//
// Lifetime: borrows the dataset.
// Thread-safety: one caller.
// Errors: InvalidArgument that names a sample, with MissingPart::kError, and where the texts cannot
// be classes; I/O. Internal to DatasetSource.
#ifndef SHARDPACK_CONVERTERS_SOURCES_TEXT_LABELS_H_
#define SHARDPACK_CONVERTERS_SOURCES_TEXT_LABELS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "converters/listing/listing.h"
#include "converters/listing/sidecars.h"
#include "formats/core/shard_index.h"
#include "readers/dataset/dataset.h"

namespace shardpack {

class TextLabels {
 public:
  explicit TextLabels(const Dataset& dataset) : dataset_(dataset) {}

  // The record that is the listing's row `row`; row after row.
  void Count(const ShardIndex& index, SampleLocation at, uint64_t row);

  // Where other samples have a label, the one whose .cls is a text is the bad one, not those that
  // lack such a field. Where none has, a warning says how the texts are taken as classes; another
  // counts samples that have neither. Rows are still in the order of the records.
  absl::Status Settle(MissingPart missing, Listing& listing) const;

  // Takes the texts as classes: `given` in this order, or all of them sorted by their bytes. A
  // number among them is the class of that name. The field is then none of the listing's.
  absl::Status MakeClasses(const std::vector<std::string>& given, MissingPart missing,
                           Listing& listing) const;

 private:
  struct Text {
    uint64_t row = 0;
    SampleLocation at;
    size_t field = 0;
    uint64_t bytes = 0;
  };

  std::string Name(const ShardIndex& index, const Text& text) const;
  absl::StatusOr<std::string> Read(const Text& text) const;
  absl::StatusOr<std::string> WhyNoLabel(const Text& text) const;
  void WarnOfUnlabelled(Listing& listing) const;

  const Dataset& dataset_;
  uint64_t labelled_ = 0, unlabelled_ = 0;
  std::vector<Text> texts_;
  bool labels_beside_texts_ = false;  // then the label comes from elsewhere
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_TEXT_LABELS_H_

// TextLabels: handles samples of shards whose .cls is not a number. A number is a label without a
// name; a text is an ordinary field, unless the user wants it as the class. Internal to
// DatasetSource.
//
//   TextLabels texts(dataset);
//   for (...) texts.CountShard(index, shard, first_row);
//   RETURN_IF_ERROR(texts.Settle(missing, listing));   // or MakeClasses
//
// Lifetime: borrows the dataset.
// Thread-safety: one caller at a time.
// Errors: InvalidArgument, naming a sample, with MissingPart::kError and if the texts cannot be
// classes; I/O.
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

  // Call in row order: the shard's first record is the listing's row `first_row`.
  void CountShard(const ShardIndex& index, uint32_t shard, uint64_t first_row);

  // If other samples have a label, a sample whose .cls is a text is the bad one, and a missing text
  // is not. If none has, a warning says how to use the texts as classes; another counts samples
  // that have neither. Rows must still be in record order.
  absl::Status Settle(MissingPart missing, Listing& listing) const;

  // Uses the texts as classes: `given`, in this order, or all of them sorted by bytes. A number
  // among them is the class of that name. Removes the field from the listing.
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

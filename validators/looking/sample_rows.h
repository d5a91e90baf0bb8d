// SampleRows: the samples of several datasets under one numbering: those of the first dataset, then
// those of the second, and so on.
//
//   const SampleRows rows(datasets);
//   absl::StatusOr<RowFacts> facts = rows.Facts(12);   // split, class, key, path, bytes, hash
//
// Lifetime: keeps copies of the datasets, which share everything.
// Thread-safety: const, any thread.
// Errors: those of opening an index.
// Units: rows, from 0; bytes.
#ifndef SHARDPACK_VALIDATORS_LOOKING_SAMPLE_ROWS_H_
#define SHARDPACK_VALIDATORS_LOOKING_SAMPLE_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/core/image_info.h"
#include "readers/dataset/dataset.h"

namespace shardpack {

struct RowFacts {
  size_t dataset = 0;
  SampleLocation at;
  std::string shard, split, key, source_path;
  int64_t label = -1;
  std::string class_name;  // the number if classes have no names; empty if there is no label
  ImageInfo image;
  std::optional<size_t> field;   // of the image, in the shard's index; none if it lacks one
  uint64_t bytes = 0, hash = 0;  // of the image
};

class SampleRows {
 public:
  explicit SampleRows(std::span<const Dataset> datasets);

  uint64_t size() const { return first_.back(); }
  std::span<const Dataset> datasets() const { return datasets_; }
  uint64_t first(size_t dataset) const { return first_[dataset]; }
  size_t DatasetOf(uint64_t row) const;
  // Within its dataset.
  SampleLocation Locate(uint64_t row) const;
  absl::StatusOr<RowFacts> Facts(uint64_t row) const;

 private:
  std::vector<Dataset> datasets_;
  std::vector<uint64_t> first_;  // the first row of each dataset, and the end of the last
};

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_LOOKING_SAMPLE_ROWS_H_

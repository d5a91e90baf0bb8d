// labels.npy next to images.npy: an int64 array (N,), with -1 for a sample without a label.
//
//   absl::StatusOr<std::vector<NamedBytes>> files = NpyLabelFiles(input);   // one a shard
//   absl::StatusOr<std::vector<int64_t>> labels = ReadNpyLabels(path, n, shard_name, findings);
//
// Thread-safety: pure except for reading.
// Errors: I/O errors; a problem with the file is a finding, and a shard without the file has no
// labels.
// Memory: 8 bytes per sample.
// Units: samples.
#ifndef SHARDPACK_FORMATS_NPY_NPY_LABELS_H_
#define SHARDPACK_FORMATS_NPY_NPY_LABELS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/core/finding.h"
#include "formats/core/format.h"

namespace shardpack {

absl::StatusOr<std::vector<NamedBytes>> NpyLabelFiles(const SidecarInput& input);

// The labels of the shard with its images at `images_path`: exactly `samples`, or none. Accepts
// integers of any width and byte order, (N,) or (N, 1). Opens no other file, and never waits for a
// pipe.
absl::StatusOr<std::vector<int64_t>> ReadNpyLabels(const std::string& images_path, uint64_t samples,
                                                   std::string_view shard, FindingSink& findings);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_NPY_NPY_LABELS_H_

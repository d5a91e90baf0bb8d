// labels.npy beside images.npy: an array (N,) of int64, -1 for a sample without label.
//
//   absl::StatusOr<std::vector<NamedBytes>> files = NpyLabelFiles(input);   // one a shard
//   absl::StatusOr<std::vector<int64_t>> labels = ReadNpyLabels(path, n, shard_name, findings);
//
// Thread-safety: pure but for reading.
// Errors: I/O; what is wrong with the file is a finding, and a shard without the file has no
// labels.
// Memory: 8 bytes a sample.
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

// Those of the shard whose images lie at `images_path`: as many as `samples`, or none. Integers of
// any width and byte order; (N,) or (N, 1). No other file is opened, and no pipe waited for.
absl::StatusOr<std::vector<int64_t>> ReadNpyLabels(const std::string& images_path, uint64_t samples,
                                                   std::string_view shard, FindingSink& findings);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_NPY_NPY_LABELS_H_

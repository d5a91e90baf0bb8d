// LabelsBesideShards: what the labels of shards mean, by the manifests that lie beside them.
//
//   absl::StatusOr<ForeignLabels> labels = LabelsBesideShards({"a/train-000000.tar", "b/x.tar"});
//   Dataset::OpenShards(paths, formats, *labels);
//
// A label is a number; shards named one by one have lost what it stands for, unless the manifest
// that lists them lies beside them. Lifetime: plain values. Thread-safety: pure but for reading
// manifests. Errors: InvalidArgument (exit 2) where the manifests' classes differ, or only some
// shards have one that names classes: a number would then mean two things; DataLoss for a damaged
// manifest; I/O.
#ifndef SHARDPACK_CONVERTERS_LABELS_BESIDE_H_
#define SHARDPACK_CONVERTERS_LABELS_BESIDE_H_

#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "readers/dataset.h"

namespace shardpack {

// Empty where no manifest lists any of the shards.
absl::StatusOr<ForeignLabels> LabelsBesideShards(std::span<const std::string> paths);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_LABELS_BESIDE_H_

// LabelsBesideShards: what the labels of shards mean, by the manifests that lie beside them.
//
//   absl::StatusOr<ForeignLabels> labels = LabelsBesideShards({"a/train-000000.tar", "b/x.tar"});
//   Dataset::OpenShards(paths, formats, *labels);
//
// A label is a number; shards named one by one have lost what it stands for, unless the manifest
// that lists them lies beside them.
//
// Thread-safety: pure but for reading manifests.
// Errors: InvalidArgument (exit 2) where the manifests' classes differ, or only some shards have
// one that names classes: a number would then mean two things; DataLoss for a damaged manifest, and
// for a shard of another size than it says; I/O.
#ifndef SHARDPACK_CONVERTERS_SOURCES_LABELS_BESIDE_H_
#define SHARDPACK_CONVERTERS_SOURCES_LABELS_BESIDE_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/io/hash.h"
#include "readers/dataset/dataset.h"

namespace shardpack {

struct LabelsBeside {
  ForeignLabels labels;  // empty where no manifest lists any of the shards
  std::vector<std::optional<Digest>>
      expected;  // one a shard: what its bytes are where the labels have names
};
absl::StatusOr<LabelsBeside> LabelsBesideShards(std::span<const std::string> paths);

// Whether these are the bytes that the labels belong to, once they have been read. DataLoss.
absl::Status CheckShardBeside(const LabelsBeside& beside, size_t shard, const std::string& path,
                              const Digest& is);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_LABELS_BESIDE_H_

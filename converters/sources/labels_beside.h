// LabelsBesideShards: finds the meaning of shards' labels in the manifests beside them.
//
//   absl::StatusOr<ForeignLabels> labels = LabelsBesideShards({"a/train-000000.tar", "b/x.tar"});
//   Dataset::OpenShards(paths, formats, *labels);
//
// A label is a number; for shards named one by one, its class is unknown unless the manifest that
// lists them lies beside them.
//
// Thread-safety: pure except for reading manifests.
// Errors: InvalidArgument (exit 2) if the manifests' classes differ, or only some shards have a
// manifest that names classes: a number would then mean two things; DataLoss for a damaged
// manifest, and for a shard whose size differs from its manifest; I/O.
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
  ForeignLabels labels;  // empty if no manifest lists any of the shards
  std::string folder;    // of the first manifest that lists one of the shards
  // One per shard: its expected bytes, if a manifest lists it.
  std::vector<std::optional<Digest>> expected;
};
absl::StatusOr<LabelsBeside> LabelsBesideShards(std::span<const std::string> paths);

// What to type about shards that are not those of the manifest in `folder`.
std::string AdviceOnOtherBytes(const std::string& folder);

// Whether these are the bytes that the labels belong to, if these have names, once the shard has
// been read; else DataLoss.
absl::Status CheckShardBeside(const LabelsBeside& beside, size_t shard, const std::string& path,
                              const Digest& is);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_LABELS_BESIDE_H_

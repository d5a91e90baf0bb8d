// ShardsWithIndex: what can be looked at of a dataset some of whose indexes are missing or damaged.
//
//   DatasetDamage damage;
//   absl::StatusOr<Dataset> dataset = Dataset::OpenDamaged(path, damage.files);
//   absl::StatusOr<Dataset> left = ShardsWithIndex(*dataset, damage);
//
// Thread-safety: any thread; works on all cores.
// Errors: FailedPrecondition if the dataset was replaced by another process.
#ifndef SHARDPACK_VALIDATORS_LOOKING_SHARDS_WITH_INDEX_H_
#define SHARDPACK_VALIDATORS_LOOKING_SHARDS_WITH_INDEX_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "readers/dataset/dataset.h"

namespace shardpack {

// Of the datasets that were looked at.
struct DatasetDamage {
  std::vector<DamagedFile> files;          // as Dataset::OpenDamaged found them
  std::vector<std::string> not_looked_at;  // as ShardsWithIndex found them, a sentence each

  bool any() const { return !files.empty() || !not_looked_at.empty(); }
};

// Their sentences.
std::vector<std::string> Reasons(const std::vector<DamagedFile>& files);

// The dataset itself if every index can be read. A sentence is added to `not_looked_at` for each
// that cannot; what `files` says of it is removed, so that each is named once.
absl::StatusOr<Dataset> ShardsWithIndex(const Dataset& dataset, DatasetDamage& damage);

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_LOOKING_SHARDS_WITH_INDEX_H_

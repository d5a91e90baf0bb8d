// HoldsDatasetParts: whether a folder without a manifest is an unfinished or damaged dataset.
//
//   absl::StatusOr<bool> parts = HoldsDatasetParts("OUT");
//   bool indexes = HasIndex(*ListFolder("OUT"));
//
// Thread-safety: any thread.
// Errors: those of listing the folder.
#ifndef SHARDPACK_FORMATS_CORE_DATASET_PARTS_H_
#define SHARDPACK_FORMATS_CORE_DATASET_PARTS_H_

#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace shardpack {

// True if one of these names in a folder is that of an index.
bool HasIndex(std::span<const std::string> names);

// True if the folder contains an index or `.pack`.
absl::StatusOr<bool> HoldsDatasetParts(const std::string& folder);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_CORE_DATASET_PARTS_H_

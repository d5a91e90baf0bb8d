// HoldsDatasetParts: what a folder without a manifest is: an unfinished or damaged dataset, or
// none.
//
//   absl::StatusOr<bool> parts = HoldsDatasetParts("OUT");
//
// Thread-safety: any thread.
// Errors: those of listing the folder.
#ifndef SHARDPACK_FORMATS_CORE_DATASET_PARTS_H_
#define SHARDPACK_FORMATS_CORE_DATASET_PARTS_H_

#include <string>

#include "absl/status/statusor.h"

namespace shardpack {

// Whether there is an index or `.pack` in it.
absl::StatusOr<bool> HoldsDatasetParts(const std::string& folder);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_CORE_DATASET_PARTS_H_

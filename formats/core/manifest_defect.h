// RefuseManifest: the error for a rejected manifest. Internal to manifest.cc and manifest_check.cc.
//
//   if (twice) return RefuseManifest(absl::StrCat("shards: twice: ", name));
//
// Errors: returns one: DataLoss, with a payload for DefectOf.
#ifndef SHARDPACK_FORMATS_CORE_MANIFEST_DEFECT_H_
#define SHARDPACK_FORMATS_CORE_MANIFEST_DEFECT_H_

#include <string>

#include "absl/status/status.h"
#include "formats/core/manifest.h"

namespace shardpack {

absl::Status RefuseManifest(const std::string& why, ManifestDefect defect = ManifestDefect::kOther);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_CORE_MANIFEST_DEFECT_H_

// DamagedManifest: why shards beside a manifest.json that cannot be read are not taken, and what to
// type. It may be the manifest of a dataset that pack has built, or the file of another program: it
// is never written over.
//
//   if (!manifest.ok()) return DamagedManifest("in", manifest.status());
//
// Thread-safety: any thread.
// Errors: it makes one, of the code of `why`.
#ifndef SHARDPACK_CONVERTERS_SOURCES_DAMAGED_MANIFEST_H_
#define SHARDPACK_CONVERTERS_SOURCES_DAMAGED_MANIFEST_H_

#include <string>

#include "absl/status/status.h"

namespace shardpack {

// `why` comes from Manifest::Read; what says nothing about the file itself stays as it is.
absl::Status DamagedManifest(const std::string& folder, const absl::Status& why);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_DAMAGED_MANIFEST_H_

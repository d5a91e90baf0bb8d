// DamagedManifest: the error for shards beside a manifest.json that cannot be read, with commands
// to type. The file may be the manifest of a dataset that pack built, or belong to another program:
// it is never overwritten.
//
//   if (!manifest.ok()) return DamagedManifest("in", manifest.status());
//
// Thread-safety: any thread.
// Errors: the result, with the code of `why`.
#ifndef SHARDPACK_CONVERTERS_SOURCES_DAMAGED_MANIFEST_H_
#define SHARDPACK_CONVERTERS_SOURCES_DAMAGED_MANIFEST_H_

#include <string>

#include "absl/status/status.h"

namespace shardpack {

// `why` comes from Manifest::Read; an error that says nothing about the file itself is returned as
// it is.
absl::Status DamagedManifest(const std::string& folder, const absl::Status& why);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_DAMAGED_MANIFEST_H_

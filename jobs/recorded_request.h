// RecordedRequest: the request that a dataset was packed by, from its manifest, so that the plan
// can be made again.
//
//   absl::StatusOr<PackRequest> request = RecordedRequest(manifest, "photos", "");
//
// Thread-safety: pure but for resolving paths.
// Errors: InvalidArgument for an option or a value that this version does not know.
#ifndef SHARDPACK_JOBS_RECORDED_REQUEST_H_
#define SHARDPACK_JOBS_RECORDED_REQUEST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/core/manifest.h"
#include "jobs/pack_request.h"

namespace shardpack {

// `source` is where the source is now; `root` where the files of a list are, empty for the list's
// own folder.
absl::StatusOr<PackRequest> RecordedRequest(const Manifest& manifest, const std::string& source,
                                            const std::string& root);

// How the manifest holds a further COCO json: relative to the folder of the first.
std::string RecordedAnnotations(const std::string& json, const std::vector<std::string>& files);

// A sentence that says which flags a manifest of this source may lack because an older version did
// not write them down; "" where there are none.
std::string UnrecordedFlags(const Manifest& manifest);

bool PackedFromFolder(const Manifest& manifest);

}  // namespace shardpack

#endif  // SHARDPACK_JOBS_RECORDED_REQUEST_H_

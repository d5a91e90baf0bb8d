// RecordedRequest: recreates the request that a dataset was packed with from its manifest, so that
// the plan can be made again.
//
//   absl::StatusOr<PackRequest> request = RecordedRequest(manifest, "photos", "");
//
// Thread-safety: pure except for resolving paths.
// Errors: InvalidArgument for an option or a value that this version does not support.
#ifndef SHARDPACK_JOBS_RECORDED_REQUEST_H_
#define SHARDPACK_JOBS_RECORDED_REQUEST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/core/manifest.h"
#include "jobs/pack_request.h"

namespace shardpack {

// `source` is the current path of the source; `root` that of a list's files, empty for the list's
// own folder.
absl::StatusOr<PackRequest> RecordedRequest(const Manifest& manifest, const std::string& source,
                                            const std::string& root);

// The form in which the manifest records an additional COCO json: relative to the folder of the
// first one.
std::string RecordedAnnotations(const std::string& json, const std::vector<std::string>& files);

// A sentence that names the flags which older versions did not record in a manifest with this kind
// of source; "" if there are none.
std::string UnrecordedFlags(const Manifest& manifest);

bool PackedFromFolder(const Manifest& manifest);

}  // namespace shardpack

#endif  // SHARDPACK_JOBS_RECORDED_REQUEST_H_

// What a look at a finished dataset tells, without reading its bytes: one stat a file.
//
//   absl::Status whole = CheckPublishedFiles("OUT", manifest);            // each file is there, with its size
//   absl::Status fresh = CheckSourceTimes("OUT", plan.listing());         // no source file is newer
//
// Lifetime, thread-safety: pure but for the file system. Errors: DataLoss (exit 4) that names files and the command that
// repairs them; FailedPrecondition (exit 5) for a source that was changed; I/O Status. Units: bytes.
#ifndef SHARDPACK_CONVERTERS_PUBLISHED_H_
#define SHARDPACK_CONVERTERS_PUBLISHED_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "converters/plan.h"
#include "formats/core/manifest.h"

namespace shardpack {

// What the manifest's plan and this one differ in, one line each, for the user.
std::vector<std::string> DifferencesFrom(const Manifest& was, const Plan& plan);

absl::Status CheckPublishedFiles(const std::string& dataset, const Manifest& manifest);
// No source file was changed after the manifest was written, by their times; one that was set back, or lies in the future, is not
// seen. Sizes and names are part of the plan's digest.
absl::Status CheckSourceTimes(const std::string& dataset, const Listing& now);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHED_H_

// CheckForUnpacked: what --against finds beside the records: files of the source that no record
// has, and files whose class is another one now.
//
//   const SourceVisit visit = [&](const auto& see) { see("cat/1.jpg", "cat"); };
//   CheckForUnpacked("OUT", manifest, visit, run, report.findings, report.not_checked);
//
// What skipped.jsonl lists was left out with a reason; where that lay in the file, it is looked at
// again, and named when it could be packed now. Of inputs that were filtered (--limit,
// --min-size) nobody has written down which they were: then only their number counts. A file that
// lies in another folder than it was packed from is known by its name and its bytes: a file that no
// record has is read once at most.
//
// Lifetime: borrows all arguments.
// Thread-safety: one caller.
// Errors: findings; what could not be read, and a stop, is said in not_checked.
// Memory: 24 bytes a record.
#ifndef SHARDPACK_VALIDATORS_CHECKS_UNPACKED_CHECK_H_
#define SHARDPACK_VALIDATORS_CHECKS_UNPACKED_CHECK_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/core/finding.h"
#include "formats/core/manifest.h"
#include "validators/checks/check_run.h"

namespace shardpack {

// Calls back for each input that a build would take from the source: its path below the root, and
// the name of its class (its number where classes have no names, "" for none).
using SourceSeen = std::function<void(std::string_view path, std::string_view class_name)>;
using SourceVisit = std::function<void(const SourceSeen&)>;

// Where run.open_source is null, no file of the source is read, and none is known as moved.
void CheckForUnpacked(const std::string& dataset, const Manifest& manifest,
                      const SourceVisit& visit, const CheckRun& run, FindingTally& findings,
                      std::vector<std::string>& not_checked);

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_CHECKS_UNPACKED_CHECK_H_

// CheckForUnpacked: what --against finds besides the records: source files without a record, and
// files whose class has changed.
//
//   const SourceVisit visit = [&](const auto& see) { see("cat/1.jpg", "cat"); };
//   CheckForUnpacked("OUT", manifest, visit, run, report.findings, report.not_checked);
//
// Files listed in skipped.jsonl were left out for a reason; if the reason lay in the file, it is
// checked again, and reported if it could be packed now. Inputs that were filtered out (--limit,
// --min-size) are not recorded one by one, so only their number is compared. A file that moved to
// another folder is recognised by its name and bytes; a file without a record is read at most once.
// record has is read once at most.
//
// Lifetime: borrows all arguments.
// Thread-safety: one caller at a time.
// Errors: findings; not_checked names what could not be read, and a stop.
// Memory: 24 bytes per record.
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

// Calls back for each input that a build would take from the source: its path relative to the root,
// and the name of its class (its number if classes have no names, "" for none).
using SourceSeen = std::function<void(std::string_view path, std::string_view class_name)>;
using SourceVisit = std::function<void(const SourceSeen&)>;

// If run.open_source is null, no source file is read and moved files are not recognised.
void CheckForUnpacked(const std::string& dataset, const Manifest& manifest,
                      const SourceVisit& visit, const CheckRun& run, FindingTally& findings,
                      std::vector<std::string>& not_checked);

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_CHECKS_UNPACKED_CHECK_H_

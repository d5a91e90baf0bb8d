// CheckFolder: compares the files in a dataset's folder, and shards indexed in place elsewhere,
// with its manifest, by name and size.
//
//   FolderCheck check = CheckFolder("OUT", manifest, format, findings);
//   if (check.present.contains("train-000000.tar")) ...
//
// Thread-safety: one caller per sink.
// Errors: findings.
// Units: bytes.
#ifndef SHARDPACK_VALIDATORS_CHECKS_FOLDER_CHECK_H_
#define SHARDPACK_VALIDATORS_CHECKS_FOLDER_CHECK_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/core/finding.h"
#include "formats/core/format.h"
#include "formats/core/manifest.h"
#include "validators/checks/check_run.h"

namespace shardpack {

struct FolderCheck {
  // Files of the manifest that exist, whatever their size; a shard indexed in place is listed by
  // its location.
  std::set<std::string> present;
};

// `format` is null if unknown.
FolderCheck CheckFolder(const std::string& root, const Manifest& manifest, const Format* format,
                        FindingSink& findings);

// Hashes the files that are neither shards nor indexes: sidecars and lists. Cancelled when the run
// must stop.
absl::Status CheckOtherFiles(const std::string& root, const Manifest& manifest,
                             const FolderCheck& folder, const CheckRun& run, uint64_t& bytes_read,
                             FindingSink& findings);

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_CHECKS_FOLDER_CHECK_H_

// LookAtFiles: checks files of a dataset for damage, several in parallel, each read once from start
// to end.
//
//   std::vector<FileLook> looks = {{.path = "OUT/train-000000.tar", .file = entry, .full = true}};
//   RETURN_IF_ERROR(LookAtFiles(looks, Unreadable::kIsDamage, jobs, progress, stop));
//   if (looks[0].damage.empty()) ...   // it matches `entry`
//
// Used only by repair*.cc.
//
// Lifetime: borrows for the call.
// Thread-safety: one call at a time for the same files.
// Errors: failures of the check itself, which say nothing about a file; Cancelled.
// Units: bytes.
#ifndef SHARDPACK_CONVERTERS_REPAIRING_FILE_LOOK_H_
#define SHARDPACK_CONVERTERS_REPAIRING_FILE_LOOK_H_

#include <atomic>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "converters/publishing/file_damage.h"
#include "converters/repairing/repair.h"
#include "formats/core/manifest.h"

namespace shardpack {

struct FileLook {
  std::string path;
  FileEntry file;
  bool full = true;  // as in DamageOf
  std::string damage = {};
};

// `jobs`: files in parallel; 0 = the cores this process may use.
absl::Status LookAtFiles(std::span<FileLook> files, Unreadable unreadable, int jobs,
                         RepairProgress& progress, const std::atomic<int>& stop);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_REPAIRING_FILE_LOOK_H_
